"""Choose, and use, the best cluster among a few unequal machines."""

__version__ = "0.1.0"
