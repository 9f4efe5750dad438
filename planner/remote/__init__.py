"""Reaching a device: few verbs, and ``local`` as one more way."""
