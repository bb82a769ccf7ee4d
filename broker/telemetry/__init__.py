"""Client telemetry (KIP-714): the clients that send metrics to a broker, and which metrics the broker requests of each client."""
