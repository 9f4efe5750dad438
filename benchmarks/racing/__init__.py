"""A race between strategies: its file, its runs, their records and their figures."""
