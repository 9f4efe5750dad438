"""Agents run on the devices and carry out the operator's orders over SSH."""
