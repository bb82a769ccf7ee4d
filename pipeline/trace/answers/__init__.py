"""Answers to common questions about recorded traffic. Each answer consists of a few small tables, which Spark makes from the tables of a trace."""
