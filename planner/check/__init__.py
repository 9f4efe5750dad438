"""A check finds what prevents a device from taking part, and names the remedy."""
