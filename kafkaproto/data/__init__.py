# Generated from schemas/data/*.json by `python -m kafkaproto.generator`. Do not edit.
"""What travels inside messages and records. Importing this imports nothing."""
