"""A topology decides to whom a worker sends at each step."""
