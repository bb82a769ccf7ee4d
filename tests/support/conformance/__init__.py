"""What the conformance tests talk to: subjects, a raw client, and the topics tests start with."""
