"""Parquet tables of recorded traffic (requests, partitions, batches, events, offsets), made with or without Spark."""
