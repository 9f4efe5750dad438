"""This package holds what all training runs share, with a server, among peers or alone."""
