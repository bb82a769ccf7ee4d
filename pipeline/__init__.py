"""PySpark over Kafka traffic. Speaks to brokers over the network only; may import kafkaproto and the quota arithmetic."""
