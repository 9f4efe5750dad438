"""What trains on a device: models, frameworks, the parameter server and its workers.

Ships to devices: Python 3.6 or newer, standard library, numpy and the framework only.
"""
