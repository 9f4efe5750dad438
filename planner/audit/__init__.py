"""The audit runs every configuration of a fleet and compares the measurements with the predictions."""
