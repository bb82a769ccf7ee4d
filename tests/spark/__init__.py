"""Spark's own Kafka source and sink against the broker, with one session for the whole run."""
