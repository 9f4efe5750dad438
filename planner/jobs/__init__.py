"""A user's job: where it is, what it computes with, and how it comes to a device."""
