"""The program `planner` begins here, so that Ctrl-C while it is still imported ends in one line."""

import sys

#: As a shell has it for SIGINT.
STOPPED = 130


def main() -> None:
    """Run `planner`."""
    try:
        from planner.cli.main import main as run  # what it imports takes a tenth of a second
    except KeyboardInterrupt:
        print("planner: stopped", file=sys.stderr)
        sys.exit(STOPPED)
    run()
