"""The conformance suite of `kafkaproto.conformance` on our own broker and on a real Kafka 3.9.1 that is started from jars.

Our own broker is four subjects: in virtual time without a socket, and on a manual clock, with both semantics; and one on the wall clock.
`pytest tests/conformance --bootstrap HOST:PORT` runs the suite on a cluster that runs already.
"""
