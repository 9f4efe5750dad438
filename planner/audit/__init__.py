"""The audit runs every configuration of a fleet and scores the predictions against them."""
