"""The fleet file names the devices and how each is reached."""
