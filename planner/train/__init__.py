"""Training starts a planned cluster, watches it to its end and compares it with its prediction."""
