"""The log of one partition: one store of bytes that all replicas share, and one log per replica with its offsets, leader epochs and producers.

The package works with offsets, bytes and ids. It does not depend on wire messages, sockets, clocks or other brokers: time is an argument.
"""
