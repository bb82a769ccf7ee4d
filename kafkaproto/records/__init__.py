"""Record batches as bytes: header access in place, checksums, building, reading, compression.

Knows the record formats and nothing about logs, offsets' meaning, or sockets.
"""
