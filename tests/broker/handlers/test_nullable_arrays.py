"""Arrays of responses that may be null on the wire, but that the Java client cannot read as null."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kafkaproto.broker.requests.registry import VERSIONS
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.generator import SCHEMAS
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.describe_client_quotas import DescribeClientQuotasRequest
from kafkaproto.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest

JAVA_READS_NULL = {("FetchResponse", "AbortedTransactions")}
"""Nullable arrays that are null in Kafka, too."""
NEVER_NULL = {
    ("CreateTopicsResponse", "Configs"),
    ("DescribeClientQuotasResponse", "Entries"),
    ("DescribeTopicPartitionsResponse", "EligibleLeaderReplicas"),
    ("DescribeTopicPartitionsResponse", "LastKnownElr"),
}


def nullable_arrays(fields: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the names of the nullable arrays among fields and their own fields, in any version."""
    for field in fields:
        if field["type"].startswith("[]") and field.get("nullableVersions", "none") != "none":
            yield field["name"]
        yield from nullable_arrays(field.get("fields", []))


def test_only_five_arrays_in_response_schemas_of_supported_apis_are_nullable() -> None:
    messages = [json.loads(path.read_text()) for path in SCHEMAS.glob("**/*Response.json")]
    served = [message for message in messages if message["apiKey"] in VERSIONS]
    assert len(served) == len(VERSIONS)
    names_of_arrays = {(message["name"], name) for message in served for name in nullable_arrays(message["fields"])}
    assert names_of_arrays == NEVER_NULL | JAVA_READS_NULL


@pytest.mark.rule("AD-7")
@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_response_arrays_that_the_java_client_cannot_read_as_null_are_never_null(release: str) -> None:
    client = VirtualCluster(1, release_name=release).connect()
    requested = [CreatableTopic(name, 1, 1) for name in ("new", "bad%name")]
    for validate_only in (True, False):
        for version in (5, 7):
            topics = client.ask(CreateTopicsRequest(requested, 1000, validate_only), version).topics
            assert [topic.configs is None for topic in topics] == [False, False]
    for version in (0, 1):
        assert client.ask(DescribeClientQuotasRequest([], False), version).entries == []
    [topic] = client.ask(DescribeTopicPartitionsRequest([TopicRequest("new")]), 0).topics
    [partition] = topic.partitions
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
