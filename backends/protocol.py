"""The messages of a run: what the operator, the hosts and the members say to one another."""

from typing import Any, Callable, Dict

Emit = Callable[[Dict[str, Any]], None]
