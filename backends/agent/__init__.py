"""The agent runs on a device and answers the operator's requests as JSON lines."""
