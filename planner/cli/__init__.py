"""The command line parses arguments, calls one function a command, and renders its result."""
