"""Traces: recorded traffic of Kafka connections, written by a broker or a proxy, or made from a packet capture.

`format` encodes a trace file and `reading` decodes it; `cutting` removes records from frames. This package does not depend on the recorder, nor on
the programs that read traces.
"""
