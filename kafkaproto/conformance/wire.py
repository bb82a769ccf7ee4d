"""Functions that build record batches and requests (Produce, Fetch, Metadata), some of an exact size, and functions that inspect responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kafkaproto.client import request_frame
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.records.batch import NewRecord, build_batch

PRODUCE_VERSION = 9
FETCH_VERSION = 11


class Client(Protocol):
    """Interface of the connections that this module accepts: they have a client id, which is in the headers of their requests."""

    @property
    def client_id(self) -> str | None: ...


def batch(*values: bytes, timestamp: int = 1_700_000_000_000, **options: Any) -> bytes:
    return build_batch([NewRecord(value, None, timestamp) for value in values or (b"v",)], **options)


def batch_of_bytes(size: int, **options: Any) -> bytes:
    """Return a batch with one record. The batch takes exactly `size` bytes on the wire, including its fields for base offset and length.

    options: further arguments of `batch`.
    """
    value = size - len(batch(b""))
    while True:
        data = batch(b"x" * value, **options)
        if len(data) == size:
            return data
        assert len(data) > size, f"no batch has exactly {size} bytes"
        value -= len(data) - size


def produce(topic: str, data: bytes, partition: int = 0, acks: int = 1, timeout_ms: int = 1000) -> ProduceRequest:
    return ProduceRequest(
        None, acks, timeout_ms, [TopicProduceData(topic, partition_data=[PartitionProduceData(partition, data)])]
    )


def produce_of_bytes(
    client: Client, topic: str, size: int, version: int = PRODUCE_VERSION, acks: int = 1
) -> ProduceRequest:
    """Return a Produce request whose header and body take exactly `size` bytes, the size that a quota charges (Q-11).

    client: the connection that will send the request; its client id is part of the header. acks: the required acknowledgements.
    """

    def charged_bytes(request: ProduceRequest) -> int:
        return len(request_frame(request, version, client_id=client.client_id)) - LENGTH_BYTES

    room = size - charged_bytes(produce(topic, b""))
    for record_bytes in range(room, room - 16, -1):
        try:
            request = produce(topic, batch_of_bytes(record_bytes), acks=acks)
        except AssertionError:
            continue
        if charged_bytes(request) == size:
            return request
    raise AssertionError(f"no Produce request to topic {topic} takes exactly {size} bytes; choose a larger size")


def fetch(
    *partitions: tuple[str, int, int],
    partition_max: int = 1 << 20,
    max_bytes: int = 1 << 30,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    session: tuple[int, int] = (0, -1),
    replica_id: int = -1,
    rack: str = "",
    isolation: int = 0,
    epoch: int = -1,
    last_epoch: int = -1,
    topic_ids: dict[str, bytes] | None = None,
    version: int = FETCH_VERSION,
) -> FetchRequest:
    """Return a Fetch request for partitions given as (topic, partition, offset).

    Each partition has a topic entry of its own, so that the given order is kept. partition_max, max_bytes: the limits in bytes for each partition and
    for the response. max_wait_ms, min_bytes: the broker waits up to max_wait_ms for min_bytes. session: (session id, session epoch). replica_id: the
    broker id of a follower, -1 for a consumer. rack: the rack of the client. isolation: 1 for read_committed, 0 for read_uncommitted. epoch: the
    leader epoch that the client believes to be current. last_epoch: the epoch of the client's last record. topic_ids: maps topic names to ids; needed
    from version 13 on.
    """
    ids = topic_ids or {}
    return FetchRequest(
        replica_id=replica_id if version < 15 else -1,
        replica_state=ReplicaState(replica_id) if version >= 15 else ReplicaState(),
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        topics=[
            FetchTopic(
                topic, ids.get(topic, bytes(16)), [FetchPartition(p, epoch, offset, last_epoch, -1, partition_max)]
            )
            for topic, p, offset in partitions
        ],
        rack_id=rack,
    )


def flat(response: Any) -> list[tuple[str, Any]]:
    """Return (topic name, response of the partition) for each partition of a Fetch response. From version 13 on, the name is empty."""
    return [(topic.topic, data) for topic in response.responses for data in topic.partitions]


def sizes(response: Any) -> list[int]:
    return [len(data.records or b"") for _, data in flat(response)]


def errors(response: Any) -> list[int]:
    return [data.error_code for _, data in flat(response)]


def produced(response: Any) -> Any:
    """Return the response for the only partition in a Produce response."""
    return response.responses[0].partition_responses[0]


def metadata(topics: Sequence[str] | None = ()) -> MetadataRequest:
    return MetadataRequest(None if topics is None else [MetadataRequestTopic(name=t) for t in topics])
