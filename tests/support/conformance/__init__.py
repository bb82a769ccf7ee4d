"""The counterparts of the conformance tests: subjects, a raw client and the initial topics."""
