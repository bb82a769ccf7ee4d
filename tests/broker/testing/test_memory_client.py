"""The client for virtual time rejects bytes that are no valid response."""

from __future__ import annotations

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.client import UnexpectedResponse
from kafkaproto.errors import DecodeError


def test_in_memory_client_rejects_a_truncated_response() -> None:
    cluster = VirtualCluster()
    client = cluster.connect()
    client.write([b"\x00\x00\x00\x10\x00\x00"])
    client.close()
    with pytest.raises(DecodeError, match="closed after 6 bytes of a response"):
        cluster.run()


def test_in_memory_client_rejects_a_response_if_no_request_is_pending() -> None:
    cluster = VirtualCluster()
    cluster.connect().write([b"\x00\x00\x00\x04\x00\x00\x00\x01"])
    with pytest.raises(UnexpectedResponse, match=r"unexpected correlation id 1 \(oldest pending request: none\)"):
        cluster.run()
