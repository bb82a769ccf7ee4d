"""The data directory: stores a cluster on disk, so that the next process can restore it.

Batches are in segment files that the log appends to; the metadata log contains everything else. The broker writes all data before it responds, so the
data survives `kill -9`. It may not survive a power failure: fsync is called for segment files only as flush.messages and flush.ms require, and never
for the metadata log. If a power failure damages the metadata log, the next start may fail. If the metadata log only loses its last records, and one
of them was the record that creates a partition, the next start deletes the partition's segment files, even if they were fsynced.
"""
