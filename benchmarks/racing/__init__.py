"""The race between strategies: what is raced, how a run is made, what is kept of it and what it comes to."""
