"""A user's own script is started, unchanged, on the members of a plan."""
