"""The package measures a device: facts, counters, power sensors, step times and links.

It ships to devices: Python 3.6 or newer, standard library and numpy only.
"""
