"""Pre-training steps and messages are timed on a device, for the prediction."""
