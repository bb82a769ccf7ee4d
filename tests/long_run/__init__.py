"""The long run: proofs that take hours, in parts. `python -m tests.long_run` does the parts that are missing and writes LONG.md."""
