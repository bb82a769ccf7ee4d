"""Requests with random content of every API in every offered version are answered (X-1, W-7)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafkaproto.api import APIS, codec
from kafkaproto.broker.network.mute import MuteState
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest
from kafkaproto.messages.produce import ProduceRequest
from tests.support.acls import with_known_codes
from tests.support.codec.values import Values
from tests.support.offered import OFFERED
from tests.support.scene import fill
from tests.support.wire import batch, limit, metadata

SHAPES = ("small", "empty", "lowest", "highest", "null", *["random"] * 5)
LONGEST_WAIT_MS = 2**31
VERSIONS = [(APIS[key].name, key, version) for key, versions in sorted(OFFERED.items()) for version in versions]


FIRST_VERSION_WITH_GROUPS = 8
"""The first version of OffsetFetch with several groups. Before 4.0, brokers leave a request without any group unanswered (GO-35)."""


def is_unanswered(request: Any, version: int) -> bool:
    if isinstance(request, OffsetFetchRequest):
        return version >= FIRST_VERSION_WITH_GROUPS and not request.groups
    return isinstance(request, ProduceRequest) and request.acks == 0


@pytest.mark.rule("X-1", "W-7")
@pytest.mark.parametrize(("name", "key", "version"), VERSIONS, ids=[f"{name}-{v}" for name, _, v in VERSIONS])
def test_random_valid_request_gets_a_response_and_logs_no_exception(
    name: str, key: int, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = VirtualCluster(2, {"connections.max.idle.ms": "-1"})
    cluster.topic("topic-1", 2, 2)
    fill(cluster, "topic-1", batch(b"a"))
    layout = codec(key, version).request
    for number, shape in enumerate(SHAPES):
        request = with_known_codes(Values(f"{name} {version} {number}").object(layout, shape))
        client = cluster.connect()
        sent = client.send(request, version)
        cluster.advance(LONGEST_WAIT_MS)
        expected = [] if is_unanswered(request, version) else [sent]
        assert [response.correlation_id for response in client.answers] == expected, request
        assert (client.closed_ms is None) or is_unanswered(request, version), request
        assert cluster.connect().ask(metadata(), 1).brokers
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


OTHERS = [v for v in VERSIONS if v[0] not in ("Produce", "Fetch", "WriteTxnMarkers")]
"""The API versions that are charged request time only. WriteTxnMarkers, which brokers send, is charged nothing (TX-47)."""


@pytest.mark.rule("T-1", "T-2")
@pytest.mark.parametrize(("name", "key", "version"), OTHERS, ids=[f"{name}-{v}" for name, _, v in OTHERS])
def test_connection_is_muted_for_1_s_after_a_request_that_exceeds_the_request_quota(
    name: str, key: int, version: int
) -> None:
    cluster = VirtualCluster()
    shape = "small" if name == "OffsetFetch" else "empty"
    request = with_known_codes(Values(f"{name} {version}").object(codec(key, version).request, shape))
    limit(cluster, client_id="test", request_percentage=0.1)
    cluster.state.request_cost_ms[name] = 100.0
    client = cluster.connect()
    response = client.ask(request, version)
    has_field = "throttle_time_ms" in dict(codec(key, version).response.fields)
    assert getattr(response, "throttle_time_ms", 0) == (1000 if has_field else 0)
    assert client.connection.state is MuteState.MUTED_AND_THROTTLED
    cluster.advance(1000)
    assert client.connection.state is MuteState.NOT_MUTED


LONG = "9" * 32_767
TOPIC, BROKER = 2, 4


def alter(resource_type: int, resource: str, name: str, value: str) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name, 0, value)
    return IncrementalAlterConfigsRequest([AlterConfigsResource(resource_type, resource, [config])])


@pytest.mark.rule("W-7")
@pytest.mark.parametrize(
    ("message", "error"),
    [
        (CreateTopicsRequest([CreatableTopic(LONG, 1, 1)]), 17),
        (CreateTopicsRequest([CreatableTopic("new", 1, 1, configs=[CreatableTopicConfig("segment.bytes", LONG)])]), 40),
        (DescribeConfigsRequest([DescribeConfigsResource(BROKER, LONG, None)]), 42),
        (DescribeConfigsRequest([DescribeConfigsResource(BROKER, "\N{SUPERSCRIPT TWO}", None)]), 42),
        (DescribeConfigsRequest([DescribeConfigsResource(TOPIC, LONG, None)]), 17),
        (alter(TOPIC, LONG, "segment.bytes", "1"), 17),
        (alter(TOPIC, "t", "segment.bytes", LONG), 40),
        (alter(TOPIC, "t", LONG, "1"), 40),
        (alter(BROKER, LONG, "message.max.bytes", "1"), 42),
        (alter(BROKER, "\N{SUPERSCRIPT TWO}", "message.max.bytes", "1"), 42),
        (alter(BROKER, "0", "message.max.bytes", LONG), 42),
    ],
)
def test_error_messages_about_very_long_names_have_at_most_1000_characters(
    message: Any, error: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    response = cluster.connect().ask(message, 1)
    [result] = getattr(response, "topics", None) or getattr(response, "results", None) or response.responses
    assert result.error_code == error
    assert len(result.error_message) <= 1000
    assert caplog.records == []
