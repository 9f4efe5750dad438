"""A topology determines to whom a worker sends in each step."""
