"""Samples arrive while a device trains: where they come from, and how it waits for them."""
