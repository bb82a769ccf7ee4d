"""Stands for the suite: `conftest.py` collects the modules of `kafkaproto.conformance` in its place."""
