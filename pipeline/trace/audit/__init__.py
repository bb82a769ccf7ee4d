"""Whether what a broker did is what Kafka promises: rules over the tables of a trace, each with what it checked and what broke it."""
