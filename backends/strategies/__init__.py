"""A strategy says how workers exchange what they learn; each of its parts is a small object.

``compressors`` choose what is sent, ``topologies`` to whom, ``synchronisation`` when workers go on.
``batching`` sets how much each computes, ``aggregation`` how gradients or weights are combined.
``presets`` name the methods of the papers, and ``strategy`` parses a name with its parts.
Arrays are numpy's; nothing here has a socket, a framework or a clock.
"""
