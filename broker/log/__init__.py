"""The log of one partition: a byte store that all its replicas share, and for each replica a view of it with its leader epochs and producers.

The package works with offsets, bytes and ids. It does not depend on wire messages, sockets, clocks or other brokers: time is an argument.
"""
