"""Comparison of the working tree with another commit: instructions per request and to start, idle memory, and speed in rows of the race."""
