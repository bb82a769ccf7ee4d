"""Captures of the network as traces: packets to connections to exchanges, with Spark or without it. The tables are those of `pipeline/trace`."""
