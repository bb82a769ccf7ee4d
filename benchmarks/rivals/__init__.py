"""Other test brokers, to see what they make of the rules: `make conformance RIVALS=1`. No part of `make test`."""
