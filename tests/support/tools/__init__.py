"""Kafka's command-line tools, run against this broker and against a real Kafka, and their outputs compared."""
