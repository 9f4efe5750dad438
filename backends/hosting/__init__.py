"""The host of a run: server, peers, ranks and a device alone plug their policies into it."""
