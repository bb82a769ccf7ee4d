"""The log of one partition: one shared store of bytes, one view of it per replica, and what is remembered about them.

Offsets, bytes and ids only: nothing here knows a wire message, a socket, a clock or another broker.
Time is an argument.
"""
