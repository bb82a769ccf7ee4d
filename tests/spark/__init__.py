"""Spark's own Kafka source and sink against the broker: one session for the whole run."""
