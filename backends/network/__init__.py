"""The data plane moves framed messages between devices over TLS."""
