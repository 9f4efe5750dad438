"""A trained model leaves a run folder, as a file that other programs load."""
