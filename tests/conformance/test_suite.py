"""A placeholder for the suite: `conftest.py` collects the modules of `kafkaproto.conformance` instead."""
