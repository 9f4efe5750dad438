"""An audit trains clusters of a ranking for a few seconds each, and scores the predictions."""
