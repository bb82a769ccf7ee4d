"""Answers to common questions about recorded traffic: each consists of a few small tables that Spark makes from the tables of a trace."""
