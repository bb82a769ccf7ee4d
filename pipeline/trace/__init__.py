"""Recorded traffic as tables: what a trace's exchanges and events come to, column by column, with Spark or without it."""
