"""The documentation: programs that write its generated pages, and tests that run every code block of it."""
