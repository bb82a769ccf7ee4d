"""The cases of the codec benchmark (messages and kinds of work with records), and the required ratios of other codecs' times to this codec's time.

A case runs in a process of its own, in which all codecs alternate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkaproto.api import ApiKey, codec
from kafkaproto.message import Message
from kafkaproto.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafkaproto.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kafkaproto.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from kafkaproto.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkaproto.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafkaproto.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.compression import Compression

MIB = 1 << 20
AS_BUFFERS = "encode as buffers"
"""The name of a kind of work: encoding into buffers without a copy of the records. No other codec supports it."""
RECORDS = 1000
TIMESTAMP_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(1, 17))


@dataclass(frozen=True)
class MessageCase:
    """A benchmark case: a request or response in one version. make: returns the message. is_request: False for a response.

    kio_decode: minimum ratio of kio's decoding time to this codec's, None for no minimum; kio decodes in Rust. as_buffers: whether to also measure
    the encoding into a list of buffers, which does not copy the records.
    """

    title: str
    key: ApiKey
    version: int
    is_request: bool
    make: Callable[[], Any]
    kio_decode: float | None
    as_buffers: bool = False

    @property
    def layout(self) -> Message[Any]:
        """Return this project's layout of the message in this version: its fields in wire order, with their wire types."""
        api = codec(self.key, self.version)
        return api.request if self.is_request else api.response

    @property
    def module(self) -> str:
        """Return the name of the API as a module name, such as ``join_group``."""
        return self.key.name.lower()


@dataclass(frozen=True)
class RecordCase:
    """A kind of work to measure with a record batch of magic 2.

    work: "iterate" decodes all records, "keys" reads only their keys, "columns" splits the batch into columns such as offsets and keys, "build"
    encodes a batch, and "checksum" verifies the checksum of a batch of 1 MiB. compression: the codec of the batch.
    mixed: True if no two neighbouring records have the same size, False if all records have one size.
    """

    title: str
    work: str
    compression: Compression = Compression.NONE
    mixed: bool = False

    def plain_records(self) -> list[tuple[bytes | None, bytes]]:
        """Return (key, value) of a thousand records. Key and value of a record together have a hundred bytes.

        If `mixed` is true, they have about a hundred bytes on average, and every tenth key is None.
        """
        if self.mixed:
            return [(None if i % 10 == 0 else b"k" * (i % 20), b"v" * (i * 37 % 181)) for i in range(RECORDS)]
        return [(b"key-%06d" % i, b"%045d" % (i * 7919) + b"v" * 45) for i in range(RECORDS)]


Case = MessageCase | RecordCase


def batch(size_bytes: int) -> bytes:
    """Return an uncompressed batch of about this size in bytes; varints make it a little smaller or larger."""
    return build_batch([NewRecord(b"x" * (size_bytes - 80), None, TIMESTAMP_MS)])


def produce_request(partitions: int, batch_bytes: int) -> ProduceRequest:
    data = [PartitionProduceData(i, batch(batch_bytes)) for i in range(partitions)]
    return ProduceRequest(None, -1, 30000, [TopicProduceData("topic-001", partition_data=data)])


def produce_response() -> ProduceResponse:
    responses = [PartitionProduceResponse(i, 0, 1000 + i, -1, 0) for i in range(100)]
    return ProduceResponse([TopicProduceResponse("topic-001", partition_responses=responses)])


def fetch_request(topics: int, partitions: int, forgotten: list[ForgottenTopic]) -> FetchRequest:
    fetch_partitions = [FetchPartition(i, 5, 100_000 + i, -1, 0, MIB) for i in range(partitions)]
    fetch_topics = [FetchTopic(f"topic-{i:03}", partitions=fetch_partitions) for i in range(topics)]
    return FetchRequest(None, -1, max_wait_ms=500, min_bytes=1, topics=fetch_topics, forgotten_topics_data=forgotten)


def fetch_response(version: int, partitions: int) -> FetchResponse:
    """Return a Fetch response with one MiB of records, divided among this many partitions of one topic."""
    records = batch(MIB // partitions)
    data = [PartitionData(i, 0, 1000, 1000, 0, aborted_transactions=None, records=records) for i in range(partitions)]
    topic = (
        FetchableTopicResponse("", TOPIC_ID, data)
        if version > 12
        else FetchableTopicResponse("topic-001", partitions=data)
    )
    return FetchResponse(0, 0, 7 if version > 6 else 0, [topic])


def metadata() -> MetadataResponse:
    partitions = [MetadataResponsePartition(0, i, i % 20, 3, [1, 2, 3], [1, 2, 3], []) for i in range(12)]
    return MetadataResponse(
        0,
        [MetadataResponseBroker(i, f"broker-{i}.example", 9092, "rack-a") for i in range(20)],
        "a-cluster-id-of-22-char",
        1,
        [MetadataResponseTopic(0, f"topic-{i:03}", TOPIC_ID, False, partitions) for i in range(100)],
    )


def join_group_request() -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name, bytes(60)) for name in ("range", "roundrobin", "sticky")]
    return JoinGroupRequest("a-group", 30000, 60000, "a-member-1234", None, "consumer", protocols)


def join_group_response() -> JoinGroupResponse:
    members = [JoinGroupResponseMember(f"member-{i:04}-{i * 7919:012}", None, bytes(60)) for i in range(100)]
    return JoinGroupResponse(0, 0, 5, None, "range", members[0].member_id, member_id="member", members=members)


def offset_fetch() -> OffsetFetchResponse:
    partitions = [OffsetFetchResponsePartitions(i, 10_000 + i, 3, "", 0) for i in range(100)]
    topics = [OffsetFetchResponseTopics(f"topic-{i:03}", partitions=partitions) for i in range(10)]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup("a-group", topics, 0)])


def api_versions() -> ApiVersionsResponse:
    return ApiVersionsResponse(0, [ApiVersion(key, 0, 9) for key in range(60)], 0)


A_THOUSAND_STRUCTS, WITH_RECORDS, SMALL = 0.5, 1.0, None
"""Minimum ratios of kio's decoding time to this codec's: for messages with many structs, messages with records, and small messages.

Many structs are a thousand or more. None stands for no minimum.
"""
MIN_ENCODE_RATIO = 2.0
"""The benchmark's requirement for encoding a message: kio's time divided by this codec's time must be at least this number."""
MIN_RECORDS_RATIOS: dict[str, float | None] = {
    "iterate": 0.25,
    "keys": 1.0,
    "columns": 1.0,
    "build": None,
    "checksum": None,
}
"""Maps a kind of work with records to the minimum ratio of the time of aiokafka's C extension to this codec's; None for no minimum."""
MIN_PURE_RATIO, MIN_PURE_MEDIAN_RATIO = 1.0, 2.0
"""Minimum ratios of the time of the fastest pure Python codec to this codec's time: in each case, and for the median of all cases."""


def message_cases() -> list[MessageCase]:
    message_case_list = []
    for version in (3, 9):
        for partitions, batch_bytes in ((1, 16 * 1024), (100, 1024), (100, 10 * 1024)):
            title = f"Produce request v{version}, {counted(partitions)} of {batch_bytes // 1024} KiB"
            make = lambda n=partitions, size=batch_bytes: produce_request(n, size)  # noqa: E731
            message_case_list.append(MessageCase(title, ApiKey.PRODUCE, version, True, make, WITH_RECORDS))
    message_case_list.append(
        MessageCase("Produce response v8, 100 partitions", ApiKey.PRODUCE, 8, False, produce_response, SMALL)
    )
    for title, shape in (
        ("Fetch request v11, full, 1000 partitions", (10, 100, [])),
        ("Fetch request v11, incremental", (2, 1, [ForgottenTopic("topic-009", partitions=[3, 4])])),
    ):
        make = lambda shape=shape: fetch_request(*shape)  # noqa: E731
        kio_ratio = A_THOUSAND_STRUCTS if "1000" in title else SMALL
        message_case_list.append(MessageCase(title, ApiKey.FETCH, 11, True, make, kio_ratio))
    for version in (4, 11, 12, 17):
        for partitions in (1, 1000):
            title = f"Fetch response v{version}, 1 MiB in {counted(partitions)}"
            make = lambda v=version, n=partitions: fetch_response(v, n)  # noqa: E731
            message_case_list.append(
                MessageCase(title, ApiKey.FETCH, version, False, make, WITH_RECORDS, partitions == 1)
            )
    for title, key, version, is_request, make in (
        ("Metadata response v12, 100 topics of 12 partitions", ApiKey.METADATA, 12, False, metadata),
        ("JoinGroup request v9, 3 protocols", ApiKey.JOIN_GROUP, 9, True, join_group_request),
        ("JoinGroup response v5, 100 members", ApiKey.JOIN_GROUP, 5, False, join_group_response),
        ("OffsetFetch response v8, 1000 partitions", ApiKey.OFFSET_FETCH, 8, False, offset_fetch),
        ("ApiVersions request v3", ApiKey.API_VERSIONS, 3, True, lambda: ApiVersionsRequest("kafkaproto", "1.0")),
        ("ApiVersions response v2, 60 APIs", ApiKey.API_VERSIONS, 2, False, api_versions),
        ("ApiVersions response v3, 60 APIs", ApiKey.API_VERSIONS, 3, False, api_versions),
    ):
        kio_ratio = A_THOUSAND_STRUCTS if key in (ApiKey.METADATA, ApiKey.OFFSET_FETCH) else SMALL
        message_case_list.append(MessageCase(title, key, version, is_request, make, kio_ratio))
    return message_case_list


def record_cases() -> list[RecordCase]:
    kinds = list(Compression)
    return [
        *(RecordCase(f"iterate, {kind.name.lower()}", "iterate", kind) for kind in kinds),
        RecordCase("iterate, none, mixed sizes", "iterate", mixed=True),
        RecordCase("keys only", "keys"),
        RecordCase("keys only, mixed sizes", "keys", mixed=True),
        RecordCase("columns", "columns"),
        RecordCase("columns, mixed sizes", "columns", mixed=True),
        *(RecordCase(f"build, {kind.name.lower()}", "build", kind) for kind in kinds),
        RecordCase("build, none, mixed sizes", "build", mixed=True),
        RecordCase("verify the checksum of 1 MiB", "checksum"),
    ]


def all_cases() -> dict[str, Case]:
    """Return every case of the codec benchmark (a message or a kind of work with records) by its title."""
    return {case.title: case for case in (*message_cases(), *record_cases())}


def counted(partitions: int) -> str:
    return "1 partition" if partitions == 1 else f"{partitions} partitions"
