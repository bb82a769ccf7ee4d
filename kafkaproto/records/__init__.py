"""Record batches and messages inside the records fields of Produce and Fetch. Each module is imported only when needed.

`batch`: magic 2, the current format: decode, build and patch in place. `message_set`: magic 0 and 1. `entries`: fields
of any magic. `columns`: only keys, or positions instead of records, for many records at once. `control`: transaction
markers. `verify`: all problems of a batch. `convert`: from one magic to another. `compression`:
the codecs, with a limit on decompressed bytes.
"""
