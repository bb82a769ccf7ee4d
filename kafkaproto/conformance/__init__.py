"""The conformance suite: black-box tests of any Kafka broker over its socket.

Install it with `pip install '.[conformance]'` in a checkout and run `kafkaproto conformance --bootstrap HOST:PORT`. The tests use only the
protocol, never the inside of a broker.
"""

try:
    import pytest
except ModuleNotFoundError:  # the command's help must work without the extra
    pass
else:
    # A failing assert in a helper shows its values, as in a test module.
    pytest.register_assert_rewrite(__name__)
