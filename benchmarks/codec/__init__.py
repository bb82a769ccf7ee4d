"""The codec's benchmark against the other codecs that Python has: `python -m benchmarks.codec` (make bench)."""
