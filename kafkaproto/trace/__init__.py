"""Traces: recorded traffic of Kafka connections, as a broker, a proxy or a capture saw it. Bytes to objects and back.

`format` is the file, `cutting` takes records out of frames. Nothing here knows who records, nor what is made of it.
"""
