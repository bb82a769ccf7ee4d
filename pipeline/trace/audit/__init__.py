"""The audit: rules that check whether a broker kept Kafka's guarantees, evaluated over the tables of a trace."""
