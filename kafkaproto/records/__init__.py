"""Record batches and messages inside the records fields of Produce and Fetch. Each module is imported only when needed.

- `batch`: the current format, magic 2: decode, build and patch in place.
- `message_set`: the older formats, magic 0 and 1.
- `entries`: records fields of any magic.
- `columns`: all keys of a batch, or the positions of all fields as arrays, which is faster than one object per record.
- `control`: transaction markers.
- `verify`: a list of all problems of a batch.
- `convert`: conversion from one magic to another.
- `compression`: the compression codecs, with a limit on decompressed bytes.
"""
