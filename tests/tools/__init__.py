"""Tests that run Kafka's command-line tools."""
