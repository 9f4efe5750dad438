"""Each exchange puts a strategy to work: it sends, receives and updates in every step."""
