"""Client telemetry: the clients that send metrics to a broker, and what the broker requests of each (KIP-714)."""
