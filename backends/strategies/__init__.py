"""How workers exchange what they learn. Orthogonal questions, each answered by small objects:
numpy in, numpy out.

What is sent: ``senders``. To whom: ``topologies``. When to go on: ``gates``. How much to compute:
``batching``. How to merge: ``merging``. Names that put these together: ``presets``. No sockets,
no framework and no clock here.
"""
