"""The benchmark of the codec against other codecs for Python: `python -m benchmarks.codec` (make bench)."""
