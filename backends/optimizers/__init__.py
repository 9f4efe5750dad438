"""Optimizers update flat float32 weights with gradients."""
