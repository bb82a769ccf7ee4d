"""Records are never copied: the memory that a decoder allocates does not grow with the records."""

from __future__ import annotations

import tracemalloc

import pytest

from kafkaproto.messages.fetch import RESPONSES, FetchableTopicResponse, FetchResponse, PartitionData

MIB = 1 << 20
PARTITIONS = 4


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_decoding_100_mib_of_records_allocates_less_than_one_mib(version: int) -> None:
    records = bytes(100 * MIB // PARTITIONS)
    partitions = [PartitionData(i, aborted_transactions=None, records=records) for i in range(PARTITIONS)]
    layout = RESPONSES[version]
    data = layout.encode(FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)]))
    assert layout.decode(layout.encode(FetchResponse())) == FetchResponse()  # generates the flat code
    tracemalloc.start()
    try:
        response = layout.decode(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MIB
    for partition in response.responses[0].partitions:
        assert isinstance(partition.records, memoryview)
        assert partition.records.obj is data and len(partition.records) == len(records)
