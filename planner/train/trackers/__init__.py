"""Trackers write the figures of a run to files that other programs show while it trains."""
