"""What is measured on a device: facts, counters, sensors, step times and links.

Ships to devices: Python 3.6 or newer, standard library and numpy only.
"""
