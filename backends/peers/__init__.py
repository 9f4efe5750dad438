"""Peers train without a server: a coordinator schedules their steps, and they exchange directly."""
