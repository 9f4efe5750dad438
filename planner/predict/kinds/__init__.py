"""Five kinds of exchange: asynchronous server, barrier, DDP, gossip, and rounds that wrap these."""
