"""Shortening of records in traces, in every magic: headers of complete batches and messages are kept."""

from __future__ import annotations

import pytest

from kafkaproto.api import ApiKey, codec
from kafkaproto.header import encode_response_header
from kafkaproto.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkaproto.records.batch import CONTROL, HEADER_BYTES, NewRecord, build_batch
from kafkaproto.records.compression import Compression
from kafkaproto.records.control import build_end_txn_marker
from kafkaproto.records.message_set import build_message_set
from kafkaproto.trace.cutting import LARGEST_CONTROL_BYTES, batch_heads, batch_heads_and_markers, read_heads, read_kept
from kafkaproto.trace.frames import cut_response

SOME = [NewRecord(b"value" * 20, b"key", 1_700_000_000_000) for _ in range(3)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_messages_of_magic_0_and_1_shortened_for_a_trace_keep_their_header_fields(
    magic: int, compression: Compression
) -> None:
    data = build_message_set(SOME, magic=magic, base_offset=7, compression=compression)
    stored = batch_heads(data)
    heads = read_heads(stored)
    assert [head.next_offset for head in heads] == ([8, 9, 10] if compression == Compression.NONE else [10])
    assert sum(head.size for head in heads) == len(data) and b"key" not in stored
    assert {head.max_timestamp for head in heads} == {SOME[0].timestamp if magic else -1}
    assert {head.compression for head in heads} == {compression}


@pytest.mark.parametrize("magic", [0, 1])
def test_trace_leaves_out_a_truncated_message_of_magic_0_or_1(magic: int) -> None:
    data = build_message_set(SOME, magic=magic, base_offset=0)
    whole = batch_heads(data)
    for end in range(len(data)):
        heads = read_heads(batch_heads(data[:end]))
        assert whole.startswith(batch_heads(data[:end])) and len(heads) == 3 * end // len(data)


@pytest.mark.parametrize("size", [-1, 0, 13, 2**31 - 1])
def test_magic_0_message_with_an_impossible_size_is_not_written_to_a_trace(size: int) -> None:
    data = bytearray(build_message_set(SOME[:1], magic=0, base_offset=0))
    data[8:12] = size.to_bytes(4, "big", signed=True)
    assert batch_heads(data) == b""


@pytest.mark.parametrize("magic", range(8))
def test_damaged_trace_data_of_3_message_headers_is_read_as_at_most_3_headers(magic: int) -> None:
    whole = bytearray(batch_heads(build_message_set(SOME, magic=1, base_offset=0)))
    for at in range(len(whole)):
        changed = whole.copy()
        changed[at] = magic
        assert len(read_heads(changed)) <= 3 and len(read_heads(changed[:at])) <= 3


def test_record_batches_shortened_for_a_trace_keep_only_their_headers() -> None:
    whole_batch = build_batch(SOME)
    assert batch_heads(whole_batch + whole_batch) == whole_batch[:HEADER_BYTES] * 2
    assert [head.record_count for head in read_heads(batch_heads(whole_batch + whole_batch + whole_batch[:-1]))] == [
        3,
        3,
    ]
    assert read_heads(b"") == []


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_trace_of_a_fetch_response_shortens_magic_0_and_1_messages_but_keeps_offsets(version: int) -> None:
    data = build_message_set(SOME, magic=int(version >= 2), base_offset=7)
    response = FetchResponse(
        responses=[FetchableTopicResponse("t", partitions=[PartitionData(0, high_watermark=10, records=data)])]
    )
    out = bytearray()
    encode_response_header(ApiKey.FETCH, version, 1, out)
    api = codec(ApiKey.FETCH, version)
    api.encode_response(response, out, None)
    cut = cut_response(ApiKey.FETCH, version, bytes(out))
    assert cut.records == (len(data),) and len(cut.frame) < len(out)
    message, _ = api.decode_response(memoryview(cut.frame), 4, len(cut.frame))
    assert [read_head.next_offset for read_head in read_heads(message.responses[0].partitions[0].records)] == [8, 9, 10]


def marker(committed: bool, base_offset: int = 7) -> bytes:
    return build_end_txn_marker(
        committed, producer_id=5, producer_epoch=1, coordinator_epoch=2, timestamp=1, base_offset=base_offset
    )


@pytest.mark.parametrize("count", [1, 2, 3])
def test_trace_stores_complete_transaction_markers_but_only_headers_of_data_batches(count: int) -> None:
    data = b"".join([build_batch(SOME), marker(True), build_batch(SOME), marker(False, 11)][:count])
    stored = batch_heads_and_markers(data)
    assert b"value" not in stored and batch_heads(data) == b"".join(data_head(head) for head in split(data))
    assert [tail for _, tail in read_kept(stored)] == [b"", marker(True), b"", marker(False, 11)][:count]
    assert read_heads(stored) == read_heads(batch_heads(data)) and len(read_heads(stored)) == count
    assert batch_heads_and_markers(marker(True)) == marker(True)


def split(data: bytes) -> list[bytes]:
    parts = []
    while data:
        size = int.from_bytes(data[8:12], "big") + 12
        parts.append(data[:size])
        data = data[size:]
    return parts


def data_head(part: bytes) -> bytes:
    return part[:HEADER_BYTES]


def test_traces_before_format_5_store_only_the_batch_header_of_transaction_markers() -> None:
    data = marker(True) + marker(False, 8) + build_batch(SOME, base_offset=9)
    old = batch_heads(data)
    assert len(old) == 3 * HEADER_BYTES and [tail for _, tail in read_kept(old)] == [b""] * 3
    assert read_heads(old) == read_heads(batch_heads_and_markers(data))


def test_trace_keeps_only_the_headers_of_large_control_batches() -> None:
    record = NewRecord(b"v" * LARGEST_CONTROL_BYTES, b"key", 1)
    data = build_batch([record], producer_id=5, producer_epoch=1, attributes=CONTROL)
    assert batch_heads_and_markers(data) == data[:HEADER_BYTES]
    assert batch_heads_and_markers(data + data) == data[:HEADER_BYTES] * 2
