"""Conversion of packet captures into the tables of `pipeline/trace`, with Spark or without it."""
