"""Looking up codecs, and the modules that a lookup imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.errors import UnsupportedVersion
from kafkaproto.messages.fetch import FETCH_REQUEST_V11, FETCH_RESPONSE_V11, FetchRequest
from kafkaproto.releases import versions


@pytest.mark.rule("M-10")
def test_codec_has_all_api_versions_of_kafka_3_9_and_kafka_4_2() -> None:
    expected_versions: dict[int, set[int]] = {}
    for release in ("3.9", "4.2"):
        for key, (low, high) in versions(release).items():
            expected_versions.setdefault(key, set()).update(range(low, high + 1))
    assert {key: set(range(i.min_version, i.max_version + 1)) for key, i in APIS.items()} == expected_versions
    for info in APIS.values():
        for version in range(info.min_version, info.max_version + 1):
            api_codec = codec(info.key, version)
            assert (api_codec.key, api_codec.name, api_codec.version) == (info.key, info.name, version)


def test_codec_function_returns_the_same_object_for_the_same_api_and_version() -> None:
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
def test_codec_for_an_unknown_api_or_version_raises_unsupported_version(api_key: int, version: int, text: str) -> None:
    with pytest.raises(UnsupportedVersion, match=text):
        codec(api_key, version)


def test_looking_up_the_codec_of_an_api_imports_no_messages_of_other_apis() -> None:
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
