"""Finding codecs, and what finding them loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.errors import UnsupportedVersion
from kafkaproto.messages.fetch import FETCH_REQUEST_V11, FETCH_RESPONSE_V11, FetchRequest

RANGES = {
    "Produce": 11,
    "Fetch": 17,
    "ListOffsets": 9,
    "Metadata": 12,
    "ApiVersions": 4,
    "OffsetForLeaderEpoch": 4,
    "InitProducerId": 5,
    "FindCoordinator": 6,
    "JoinGroup": 9,
    "SyncGroup": 5,
    "Heartbeat": 4,
    "LeaveGroup": 5,
    "OffsetCommit": 9,
    "OffsetFetch": 9,
    "ListGroups": 5,
    "DescribeGroups": 5,
    "CreateTopics": 7,
    "DeleteTopics": 6,
    "DescribeConfigs": 4,
    "IncrementalAlterConfigs": 1,
    "DescribeCluster": 1,
    "DescribeClientQuotas": 1,
    "AlterClientQuotas": 1,
}


def test_M10_all_versions_that_are_wanted_are_there() -> None:
    assert {info.name: (info.min_version, info.max_version) for info in APIS.values()} == {
        name: (0, highest) for name, highest in RANGES.items()
    }
    for info in APIS.values():
        for version in range(info.max_version + 1):
            found = codec(info.key, version)
            assert (found.key, found.name, found.version) == (info.key, info.name, version)


def test_a_codec_is_made_once_and_holds_both_directions() -> None:
    fetch = codec(ApiKey.FETCH, 11)
    assert fetch is codec(1, 11)
    assert (fetch.request, fetch.response) == (FETCH_REQUEST_V11, FETCH_RESPONSE_V11)
    out = bytearray()
    fetch.encode_request(FetchRequest(rack_id="b"), out, None)
    request, end = fetch.decode_request(memoryview(out), 0, len(out))
    assert (request, end) == (FetchRequest(rack_id="b"), len(out))
    assert repr(fetch) == "<Fetch v11>"


@pytest.mark.parametrize(
    ("api_key", "version", "text"), [(1, 18, "only Fetch v0 to v17"), (1, -1, "v-1"), (999, 0, "key 999 is unknown")]
)
def test_what_is_not_there_raises(api_key: int, version: int, text: str) -> None:
    with pytest.raises(UnsupportedVersion, match=text):
        codec(api_key, version)


def test_only_the_messages_that_are_asked_for_are_loaded() -> None:
    program = """
import sys
import kafkaproto.header, kafkaproto.frame
from kafkaproto.api import codec
loaded = lambda: sorted(name for name in sys.modules if name.startswith("kafkaproto.messages."))
print(loaded())
codec(18, 3)
print(loaded())
print([name for name in ("asyncio", "ssl", "cramjam", "broker", "crc32c") if name in sys.modules])
"""
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    headers = ["kafkaproto.messages.request_header", "kafkaproto.messages.response_header"]
    assert output.splitlines() == [str(headers), str(["kafkaproto.messages.api_versions", *headers]), "[]"]
