"""Proofs that take hours, in parts. `python -m tests.long_run` runs the missing parts and writes docs/long-run.md."""
