"""The help of commands with --strategy lists all strategies, which it imports only then."""

from typing import Any

from typer.core import TyperCommand


class StrategyCommand(TyperCommand):
    """A command that lists the strategies below its options."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the strategies, their aliases and the example."""
        with formatter.section("Strategies"):
            formatter.write_dl(list(descriptions().items()))
        super().format_epilog(ctx, formatter)


def descriptions() -> dict[str, str]:
    """A line on each strategy and on each alias, by name."""
    from backends.strategies.presets import ALIASES, DESCRIPTIONS

    return {**DESCRIPTIONS, **{alias: f"the same as {name}" for alias, name in ALIASES.items()}}
