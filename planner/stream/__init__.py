"""Producers of samples for runs whose devices receive them while they train."""
