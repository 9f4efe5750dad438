"""Profiling measures steps, links, counters and watts of a fleet and writes profile.json."""
