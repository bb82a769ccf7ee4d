"""Compares the working tree with another commit: instructions per request, start, idle memory, and rows of the race in pairs."""
