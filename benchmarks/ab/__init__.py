"""Comparison of the working tree with another commit: instructions per request and at start, idle memory, and speed over real sockets."""
