"""Requests with their responses, as the bytes of a captured connection."""

from __future__ import annotations

from typing import Any

from kafkaproto.client import key_of, request_frame, response_frame
from kafkaproto.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafkaproto.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkaproto.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkaproto.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tests.support.pipeline.wire import CLIENT, SERVER, Line
from tests.support.wire import batch, metadata, produce

TOPIC_ID = bytes(range(16))


def request(message: Any, key: int, version: int, number: int, client: str = "me") -> bytes:
    assert key_of(message) == key
    return request_frame(message, version, number, client)


def response(message: Any, key: int, version: int, number: int) -> bytes:
    return response_frame(message, key, version, number)


def versions(number: int, *offered: tuple[int, int, int]) -> tuple[bytes, bytes]:
    message = ApiVersionsResponse(api_keys=[ApiVersion(*version_range) for version_range in offered])
    return request(ApiVersionsRequest(), 18, 2, number), response(message, 18, 2, number)


def produced(number: int, size: int = 500, acks: int = 1) -> tuple[bytes, bytes]:
    request_bytes = request(produce("t", batch(b"x" * size), acks=acks), 0, 9, number)
    topic_responses = [
        TopicProduceResponse("t", partition_responses=[PartitionProduceResponse(0, 0, base_offset=number * 10)])
    ]
    return request_bytes, response(ProduceResponse(topic_responses), 0, 9, number)


def fetched(number: int, size: int = 3000) -> tuple[bytes, bytes]:
    """Return a fetch request by topic id and its response."""
    fetch_request = FetchRequest(topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[FetchPartition(0)])])
    data = [PartitionData(0, 0, 9, records=batch(b"x" * size))]
    message = FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=data)])
    return request(fetch_request, 1, 13, number), response(message, 1, 13, number)


def named(number: int, port: int = 9092) -> tuple[bytes, bytes]:
    topics = [MetadataResponseTopic(0, "t", TOPIC_ID, partitions=[MetadataResponsePartition(leader_id=3)])]
    message = MetadataResponse(brokers=[MetadataResponseBroker(3, "127.0.0.1", port)], topics=topics)
    return request(metadata(["t"]), 3, 12, number), response(message, 3, 12, number)


def add_exchanges(line: Line, *exchanges: tuple[bytes, bytes]) -> None:
    for request_bytes, response_bytes in exchanges:
        line.says(CLIENT, request_bytes)
        line.says(SERVER, response_bytes)
