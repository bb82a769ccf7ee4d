"""Finding codecs, and what finding them loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.errors import UnsupportedVersion
from kafkaproto.messages.fetch import FETCH_REQUEST_V11, FETCH_RESPONSE_V11, FetchRequest
from kafkaproto.releases import versions


@pytest.mark.rule("M-10")
def test_all_versions_that_kafka_3_9_and_4_2_offer_are_there() -> None:
    wanted: dict[int, set[int]] = {}
    for release in ("3.9", "4.2"):
        for key, (low, high) in versions(release).items():
            wanted.setdefault(key, set()).update(range(low, high + 1))
    assert {key: set(range(i.min_version, i.max_version + 1)) for key, i in APIS.items()} == wanted
    for info in APIS.values():
        for version in range(info.min_version, info.max_version + 1):
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
    ("api_key", "version", "text"), [(1, 19, "only Fetch v0 to v18"), (1, -1, "v-1"), (999, 0, "key 999 is unknown")]
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
