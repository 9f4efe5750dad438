"""The command line parses arguments, calls one function for each command, and renders what it returns."""
