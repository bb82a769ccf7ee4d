"""Whatever a request says, if it parses it is answered: random content for every API in every version that is offered (X-1, W-7)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from broker.testing.memory import VirtualCluster
from kafkaproto.api import APIS, codec
from kafkaproto.messages.produce import ProduceRequest
from tests.broker.scene import fill
from tests.broker.wire import batch, metadata
from tests.kafkaproto.values import Values

SHAPES = ("small", "empty", "lowest", "highest", "null", *["random"] * 5)
LONGEST_WAIT_MS = 2**31
VERSIONS = [
    (info.name, int(key), version)
    for key, info in sorted(APIS.items())
    for version in range(info.min_version, info.max_version + 1)
]


def is_unanswered(request: Any) -> bool:
    return isinstance(request, ProduceRequest) and request.acks == 0


@pytest.mark.parametrize(("name", "key", "version"), VERSIONS, ids=[f"{name}-{v}" for name, _, v in VERSIONS])
def test_X1_W7_a_request_with_any_content_is_answered_and_breaks_nothing(
    name: str, key: int, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = VirtualCluster(2, {"connections.max.idle.ms": "-1"})
    cluster.topic("topic-1", 2, 2)
    fill(cluster, "topic-1", batch(b"a"))
    layout = codec(key, version).request
    for number, shape in enumerate(SHAPES):
        request = Values(f"{name} {version} {number}").object(layout, shape)
        client = cluster.connect()
        sent = client.send(request, version)
        cluster.advance(LONGEST_WAIT_MS)
        expected = [] if is_unanswered(request) else [sent]
        assert [answer.correlation_id for answer in client.answers] == expected, request
        assert (client.closed_ms is None) or is_unanswered(request), request
        assert cluster.connect().ask(metadata(), 1).brokers
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
