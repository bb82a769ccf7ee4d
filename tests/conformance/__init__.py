"""The conformance suite of `kafkaproto.conformance` on this broker and on a real Kafka 3.9.1 that is started from jars.

This broker has several subjects: in virtual time without sockets, and on a manual clock, with both semantics; and one on the wall clock.
`pytest tests/conformance --bootstrap HOST:PORT` runs the suite on a running cluster.
"""
