"""Packet captures as traces: makes the tables of `pipeline/trace` from packets, with Spark or without it."""
