"""The data directory: the state of a cluster that survives its process, and how the next process restores it.

Batches are in segment files that the log appends to; the metadata log holds everything else. All data is written before the broker
responds, so it survives `kill -9`. It need not survive a power failure: segment files are forced to the disk only as flush.messages
requires, and the metadata log never. If the metadata of a partition is lost, the next start deletes its records even if they were flushed,
or fails if the metadata log is damaged.
"""
