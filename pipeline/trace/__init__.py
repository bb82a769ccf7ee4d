"""The tables of recorded traffic: requests, partitions, batches, events and offsets of a trace as Parquet, made with or without Spark."""
