"""A compressor decides what of a gradient or of weights one message holds."""
