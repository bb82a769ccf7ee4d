"""kafka_py treats damaged responses as a broken connection, which a read retries."""

from __future__ import annotations

import pytest

from kafkaproto.pipeline.kafka_py.connection import Connection
from kafkaproto.pipeline.kafka_py.options import ClientSettings
from tests.support.answering import answering


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xff\xff\xff\xff", "is not a Kafka broker, because its first bytes are"),
        (b"\x00\x00\x00\x00", "a response header takes at least 4 bytes"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x01", "ApiVersionsResponse"),
        (b"\x00\x00\x00\x04\x00\x00\x00\x09", r"correlation id 9 \(oldest pending request: 1\)"),
        (b"\x00\x00\x00\x09\x00", "closed the connection"),
    ],
)
def test_spark_kafka_py_raises_a_connection_error_for_a_damaged_response(data: bytes, text: str) -> None:
    with answering(data) as port, pytest.raises(ConnectionError, match=text):
        Connection("127.0.0.1", port, ClientSettings((f"127.0.0.1:{port}",)))
