"""Records fields: views of the frame when decoded, bytes or file ranges when encoded."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.errors import EncodeError
from kafkaproto.frame import finish_frame, frame, spliced_parts, start_frame
from kafkaproto.messages.fetch import RESPONSES, FetchableTopicResponse, FetchResponse, PartitionData
from kafkaproto.messages.produce import REQUESTS, PartitionProduceData, ProduceRequest, TopicProduceData


class FileRange:
    """Stands for the file range that a broker uses in place of bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __len__(self) -> int:
        return len(self.content)


def produce(*records: Any) -> ProduceRequest:
    partitions = [PartitionProduceData(i, value) for i, value in enumerate(records)]
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData("t", partition_data=partitions)])


def fetched(*records: Any) -> FetchResponse:
    partitions = [PartitionData(i, records=value) for i, value in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse("t", partitions=partitions)])


@pytest.mark.parametrize("version", REQUESTS)
def test_decoded_records_are_views_of_the_frame_buffer(version: int) -> None:
    buffer = bytearray(b"header" + REQUESTS[version].encode(produce(b"first", None, b"")))
    view = memoryview(buffer)
    request, end = REQUESTS[version].decode_flat(view, 6, len(view))
    assert end == len(view)
    first, null, empty = (partition.records for partition in request.topic_data[0].partition_data)
    assert isinstance(first, memoryview) and first.obj is buffer and first == b"first"
    assert null is None and empty == b""
    buffer[buffer.index(b"first")] = ord("F")
    assert first == b"First"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("version", RESPONSES)
def test_encoding_accepts_records_of_any_bytes_like_type(kind: type, version: int) -> None:
    out, splices = bytearray(), []
    RESPONSES[version].encode_flat(fetched(kind(b"x" * 300)), out, splices)
    assert splices == [] and out == RESPONSES[version].build(fetched(b"x" * 300))


@pytest.mark.parametrize("version", RESPONSES)
def test_fetch_response_frame_has_the_same_bytes_with_records_in_files_or_in_memory(version: int) -> None:
    contents = (b"a" * 100, b"", b"c" * 70_000)
    expected = frame(RESPONSES[version].encode(fetched(*contents)))
    ranges = [FileRange(content) for content in contents]
    out, splices = start_frame(), []
    RESPONSES[version].encode_flat(fetched(*ranges), out, splices)
    assert [value for _, value in splices] == ranges
    assert finish_frame(out, splices) == len(expected) - 4
    parts = [part.content if isinstance(part, FileRange) else bytes(part) for part in spliced_parts(out, splices)]
    assert b"".join(parts) == expected


def test_generated_and_construct_encoders_insert_file_records_at_equal_positions() -> None:
    message = fetched(FileRange(b"abc"), b"def", FileRange(b"ghi"))
    out, splices = bytearray(), []
    RESPONSES[12].encode_flat(message, out, splices)
    readable: list[Any] = []
    assert RESPONSES[12].build_spliced(message, readable) == out
    assert readable == splices


@pytest.mark.parametrize("version", [4, 12])
def test_response_with_records_in_a_file_cannot_be_encoded_into_a_bytes_object(version: int) -> None:
    with pytest.raises(EncodeError, match=r"partitions\[1\]\.records"):
        RESPONSES[version].encode(fetched(b"", FileRange(b"abc")))
    with pytest.raises(EncodeError, match=r"partitions\[0\]\.records"):
        RESPONSES[version].encode_flat(fetched(5), bytearray(), [])
