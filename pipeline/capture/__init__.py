"""Packet captures as traces: makes the same tables as `pipeline/trace` from packets, with Spark or without it."""
