"""The log of one partition: a store of bytes that its replicas share, and a view of the store with leader epochs and producers per replica.

The package works with offsets, bytes and ids. It does not depend on wire messages, sockets, clocks or other brokers: time is an argument.
"""
