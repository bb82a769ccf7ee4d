"""Client libraries with brokers of several releases: programs that try each library, the outcomes, and their documentation."""
