"""Data sets are read from files and handed to a worker in batches."""
