"""Black-box tests of a broker over its socket: `pytest tests/conformance --bootstrap HOST:PORT --semantics kafka`.

Without an address they run against our own broker (both semantics; wall clock and manual clock) and against a real Kafka 3.9.1
that is started from jars. They must never look inside a broker.
"""
