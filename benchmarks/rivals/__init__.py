"""Other brokers: Apache Kafka and kfake, downloaded on first use. Benchmarks and tests compare this project's broker with them."""
