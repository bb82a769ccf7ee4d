"""The conformance suite of `kafkaproto.conformance` on this broker and on real Kafkas, 3.9.1 and 4.2.0, that are started from jars.

This broker has several subjects: in virtual time without sockets, and on a manual clock, with both semantics and with release 4.2; and one on the
wall clock. A test runs on the releases that its marker `releases` names. It is never skipped there: a skipped test fails.
`pytest tests/conformance --bootstrap HOST:PORT` runs the suite on a running cluster.
"""
