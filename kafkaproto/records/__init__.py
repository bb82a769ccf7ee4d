"""What lies inside the records fields of Produce and Fetch. Loaded only by who looks inside; each module on its own.

`batch`: magic 2, the batches of today, read, built and patched in place. `message_set`: magic 0 and 1. `entries`: fields
that may hold any magic. `columns`: keys only, or places instead of records, for many records at once. `control`:
markers of transactions. `verify`: all that is wrong with a batch. `convert`: from one magic to another. `compression`:
the codecs, with a limit for what they unpack to.
"""
