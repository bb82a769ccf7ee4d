"""Other brokers: Apache Kafka and kfake, fetched on first use. Benchmarks race them, and tests compare with them."""
