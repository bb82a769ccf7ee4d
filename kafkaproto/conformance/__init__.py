"""The conformance suite: black-box tests of any Kafka broker over its socket.

`pip install 'kafkaproto[conformance]'`, then `kafkaproto conformance --bootstrap HOST:PORT`. The tests never look inside a broker.
"""

import pytest

# A failing assert in a helper shows its values, as in a test module.
pytest.register_assert_rewrite(__name__)
