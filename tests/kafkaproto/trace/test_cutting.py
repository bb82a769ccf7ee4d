"""What is left of records, of every magic: enough to know which offsets they were, of whole batches and messages only."""

from __future__ import annotations

import pytest

from kafkaproto.api import ApiKey, codec
from kafkaproto.header import encode_response_header
from kafkaproto.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkaproto.records.batch import HEADER_BYTES, NewRecord, build_batch
from kafkaproto.records.compression import Compression
from kafkaproto.records.message_set import build_message_set
from kafkaproto.trace.cutting import batch_heads, read_heads
from kafkaproto.trace.frames import cut_response

SOME = [NewRecord(b"value" * 20, b"key", 1_700_000_000_000) for _ in range(3)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_messages_leave_what_stands_in_front_of_their_keys(magic: int, compression: Compression) -> None:
    data = build_message_set(SOME, magic=magic, base_offset=7, compression=compression)
    left = batch_heads(data)
    found = read_heads(left)
    assert [one.next_offset for one in found] == ([8, 9, 10] if compression == Compression.NONE else [10])
    assert sum(one.size for one in found) == len(data) and b"key" not in left
    assert {one.max_timestamp for one in found} == {SOME[0].timestamp if magic else -1}
    assert {one.compression for one in found} == {compression}


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_of_which_the_end_is_missing_leaves_nothing(magic: int) -> None:
    data = build_message_set(SOME, magic=magic, base_offset=0)
    whole = batch_heads(data)
    for end in range(len(data)):
        found = read_heads(batch_heads(data[:end]))
        assert whole.startswith(batch_heads(data[:end])) and len(found) == 3 * end // len(data)


@pytest.mark.parametrize("size", [-1, 0, 13, 2**31 - 1])
def test_a_message_that_says_another_size_than_it_can_have_leaves_nothing(size: int) -> None:
    data = bytearray(build_message_set(SOME[:1], magic=0, base_offset=0))
    data[8:12] = size.to_bytes(4, "big", signed=True)
    assert batch_heads(data) == b""


@pytest.mark.parametrize("magic", range(8))
def test_what_nobody_can_have_left_is_read_as_far_as_it_goes(magic: int) -> None:
    whole = bytearray(batch_heads(build_message_set(SOME, magic=1, base_offset=0)))
    for at in range(len(whole)):
        changed = whole.copy()
        changed[at] = magic
        assert len(read_heads(changed)) <= 3 and len(read_heads(changed[:at])) <= 3


def test_of_batches_nothing_but_their_headers_is_left() -> None:
    one = build_batch(SOME)
    assert batch_heads(one + one) == one[:HEADER_BYTES] * 2
    assert [head.record_count for head in read_heads(batch_heads(one + one + one[:-1]))] == [3, 3]
    assert read_heads(b"") == []


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_the_answer_to_an_old_client_is_cut_by_who_stands_in_between(version: int) -> None:
    data = build_message_set(SOME, magic=int(version >= 2), base_offset=7)
    told = FetchResponse(
        responses=[FetchableTopicResponse("t", partitions=[PartitionData(0, high_watermark=10, records=data)])]
    )
    out = bytearray()
    encode_response_header(ApiKey.FETCH, version, 1, out)
    api = codec(ApiKey.FETCH, version)
    api.encode_response(told, out, None)
    cut = cut_response(ApiKey.FETCH, version, bytes(out))
    assert cut.records == (len(data),) and len(cut.frame) < len(out)
    message, _ = api.decode_response(memoryview(cut.frame), 4, len(cut.frame))
    assert [one.next_offset for one in read_heads(message.responses[0].partitions[0].records)] == [8, 9, 10]
