"""Each exchange implements a strategy: it sends, receives and updates in every step."""
