"""The benchmark of the codec against the other codecs for Python: `python -m benchmarks.codec` (make bench)."""
