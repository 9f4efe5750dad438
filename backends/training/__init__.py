"""This package holds the parts common to all runs: with a server, among peers or alone."""
