"""The doctor finds what keeps a device from taking part, and names the remedy."""
