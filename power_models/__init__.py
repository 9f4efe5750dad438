"""Watts from what is known about a device. Pure; runs on the operator's machine."""
