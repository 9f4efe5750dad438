"""A compressor selects the part of a gradient or of weights that one message holds."""
