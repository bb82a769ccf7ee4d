"""The data directory: what of a cluster survives its process, and how the next one finds it.

Batches lie in segment files that the log appends to; facts say what bytes cannot. `kill -9` is survived by writing before
answering; losing the machine's power is not, but as far as flush.messages asks for it.
"""
