"""A strategy determines how workers exchange updates; each of its parts is a small object.

compressors: what a message holds.
topologies: to whom a worker sends.
synchronisation: when a worker begins a step.
batching: how many samples each worker computes.
aggregation: how gradients or weights are combined.
presets: the methods of the papers by name; ``strategy`` parses a name with its parts.
Arrays are numpy's; nothing here uses a socket, a framework or a clock.
"""
