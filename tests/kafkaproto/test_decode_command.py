"""`kafkaproto decode` of whole frames and record batches, name suggestions, and the output of `apis --release`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaproto import cli
from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.broker.cluster import Cluster
from kafkaproto.client import request_frame, response_frame
from kafkaproto.command_line import EXAMPLES, main
from kafkaproto.json_form import to_json
from kafkaproto.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkaproto.messages.fetch import FetchResponse
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.compression import Compression
from kafkaproto.records.message_set import build_message_set

METADATA = MetadataRequest([MetadataRequestTopic(name="orders")])
FRAME = request_frame(METADATA, 9, correlation_id=7, client_id="me")
SMALL = request_frame(ApiVersionsRequest(), 0, correlation_id=1, client_id=None)


def decoded(capsys: pytest.CaptureFixture[str], data: bytes, *arguments: str) -> dict[str, Any]:
    assert main("decode", [*arguments, "--hex", data.hex()]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    decoded_json: dict[str, Any] = json.loads(out)
    return decoded_json


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments[0], arguments[1:]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    return err


@pytest.mark.parametrize("start", [4, 0], ids=["with length", "without length"])
def test_decode_command_detects_api_and_version_of_a_request_frame(
    capsys: pytest.CaptureFixture[str], start: int
) -> None:
    message = decoded(capsys, FRAME[4 - start :])
    assert (message["api"], message["kind"], message["version"]) == ("Metadata", "request", 9)
    assert message.get("length") == (len(FRAME) - 4 if start else None)
    assert message["header"] == {"requestApiKey": 3, "requestApiVersion": 9, "correlationId": 7, "clientId": "me"}
    assert message["message"] == to_json(codec(3, 9).request, METADATA)
    assert "left" not in message
    offsets = {field["path"]: field["offset"] for field in message["fields"]}
    assert offsets["requestApiKey"] == start
    assert FRAME[4 - start :][offsets["topics[0].name"] :][:7] == b"\x07orders"


@pytest.mark.parametrize("key", APIS)
def test_decode_command_detects_request_frames_of_every_api(capsys: pytest.CaptureFixture[str], key: int) -> None:
    for version in (APIS[key].min_version, APIS[key].max_version):
        request = codec(key, version).request.cls()
        for correlation_id in (0, 7, 0x00010005, 2**31 - 1):
            frame = request_frame(request, version, correlation_id, "client")
            for data, length in ((frame, len(frame) - 4), (frame[4:], None), (frame + SMALL, len(frame) - 4)):
                message = decoded(capsys, data)
                assert (message["api"], message["version"], message.get("length")) == (APIS[key].name, version, length)
                assert message["header"]["correlationId"] == correlation_id
                assert message.get("left", 0) == len(data) - len(frame) + (0 if length else 4)


def test_decode_command_error_contains_how_many_bytes_of_the_frame_are_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = refused(capsys, "decode", "--hex", FRAME[:-3].hex())
    assert f"the request frame is incomplete: 3 of its {len(FRAME) - 4} bytes are missing" in error


def test_decode_command_names_the_field_of_a_damaged_request(capsys: pytest.CaptureFixture[str]) -> None:
    damaged = FRAME[:18] + b"\x70" + FRAME[19:]
    assert "MetadataRequest.topics" in refused(capsys, "decode", "--hex", damaged.hex())
    assert "MetadataRequest.topics" in refused(capsys, "decode", "--hex", damaged[4:].hex())
    assert "RequestHeader" in refused(capsys, "decode", "--hex", "ff")


def test_decode_command_decodes_a_response_frame_with_the_api_of_its_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ("--api", "fetch", "--version", "11", "--response", "--frame")
    data = response_frame(FetchResponse(session_id=5), ApiKey.FETCH, 11, 9)
    message = decoded(capsys, data + b"\0\0", *options)
    assert (message["api"], message["header"]["correlationId"], message["message"]["sessionId"]) == ("Fetch", 9, 5)
    assert (message["length"], message["left"]) == (len(data) - 4, 2)
    assert "the input has 12 bytes, but the frame needs 4 bytes for its length and 18 bytes after it" in refused(
        capsys, "decode", *options, "--hex", data[:12].hex()
    )


def test_decode_command_reads_api_versions_response_with_unsupported_version_as_v0(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = response_frame(ApiVersionsResponse(error_code=35), ApiKey.API_VERSIONS, 0, 1)
    message = decoded(capsys, data, "--api", "api-versions", "--version", "4", "--response", "--frame")
    assert (message["version"], message["message"]["errorCode"]) == (0, 35)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--response", "--hex", "00"), "--response needs --api API and --version N of the request"),
        (("--api", "fetch", "--hex", "00"), "--version N is missing"),
        (("--data", "voters-record", "--hex", "00"), "--version N is missing"),
        (
            ("--version", "3", "--hex", "00"),
            "drop --version, because the version stands in the input: whole request frames and record batches contain",
        ),
        (
            ("--data", "record-batch", "--version", "2", "--hex", "00"),
            "drop --version, because the version stands in the input: whole request frames and record batches contain",
        ),
        (
            ("--data", "record-batch", "--frame", "--hex", "00"),
            "--response, --header and --frame cannot be combined with --data",
        ),
        (("--data", "record-batch", "--hex", "00"), "RecordBatch"),
        (("--api", "metdata", "--version", "9", "--hex", "00"), 'did you mean "Metadata"?'),
        (("--data", "offset-comit-value", "--version", "3", "--hex", "00"), 'did you mean "OffsetCommitValue"?'),
        (("--data", "recordbatches", "--version", "3", "--hex", "00"), 'did you mean "RecordBatch"?'),
    ],
)
def test_decode_command_prints_1_error_line_for_missing_or_contradictory_options(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], error: str
) -> None:
    assert error in refused(capsys, "decode", *arguments)


def test_show_and_encode_commands_suggest_an_api_if_its_name_is_misspelled(capsys: pytest.CaptureFixture[str]) -> None:
    assert 'did you mean "FindCoordinator"?' in refused(capsys, "show", "find-cordinator", "1")
    assert 'did you mean "Produce"?' in refused(capsys, "encode", "--api", "prduce", "--version", "9")
    assert "can be decoded, but not encoded" in refused(capsys, "encode", "--data", "record-batch", "--version", "2")


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.GZIP])
def test_decode_command_decodes_record_batches_with_their_records(
    capsys: pytest.CaptureFixture[str], compression: Compression
) -> None:
    first = build_batch([NewRecord(b"v", b"k", 1000, [("h", b"\xff")])], base_offset=5, compression=compression)
    second = build_batch([NewRecord(None, b"\0"), NewRecord("ü".encode())], base_offset=6)
    message = decoded(capsys, first + second + first[:20], "--data", "record-batch")
    assert (message["data"], message["left"]) == ("RecordBatch", 20)
    whole, two = message["batches"]
    assert (whole["offset"], whole["size"], two["offset"]) == (0, len(first), len(first))
    assert (whole["header"]["baseOffset"], whole["header"]["magic"], whole["crcIsValid"]) == (5, 2, True)
    assert whole["records"] == [
        {
            "offset": 5,
            "timestamp": 1000,
            "key": "k",
            "value": "v",
            "headers": [{"key": "h", "value": {"hex": "ff"}}],
        }
    ]
    assert [(r["offset"], r["key"], r["value"]) for r in two["records"]] == [(6, {"hex": "00"}, None), (7, None, "ü")]


def test_decode_command_prints_crc_is_valid_false_for_a_batch_with_wrong_checksum(
    capsys: pytest.CaptureFixture[str],
) -> None:
    batch = bytearray(build_batch([NewRecord(b"value")]))
    batch[-2] ^= 1
    [decoded_batch] = decoded(capsys, bytes(batch), "--data", "RecordBatch")["batches"]
    assert decoded_batch["crcIsValid"] is False


def test_decode_command_decodes_a_message_set_of_magic_1(capsys: pytest.CaptureFixture[str]) -> None:
    data = build_message_set([NewRecord(b"v", b"k", 5)], magic=1)
    [decoded_batch] = decoded(capsys, data, "--data", "record-batch")["batches"]
    assert (decoded_batch["header"]["magic"], decoded_batch["records"][0]["value"]) == (1, "v")


def test_documented_decode_commands_that_take_hex_digits_succeed(capsys: pytest.CaptureFixture[str]) -> None:
    examples = [shlex.split(command) for _, command in EXAMPLES["decode"]]
    with_digits = [words[2:] for words in examples if "--hex" in words]
    assert len(with_digits) == 2
    for arguments in with_digits:
        assert main("decode", arguments) == 0
        assert "left" not in json.loads(capsys.readouterr().out)


def test_apis_command_for_a_release_prints_the_versions_that_the_test_broker_offers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["kafkaproto", "apis", "--release", "4.2"])
    assert cli.main() == 0
    head, *rows = (line.split("  ") for line in capsys.readouterr().out.splitlines())
    assert [text.strip() for text in head if text.strip()][3] == "this broker"
    served = Cluster(1, release_name="4.2").apis
    for row in rows:
        key, name, versions, marked = [text.strip() for text in row if text.strip()][:4]
        api = served.get(int(key))
        assert marked == ("no" if api is None else f"{api.min_version}-{api.max_version}"), (name, versions)
    assert any("ConsumerGroupHeartbeat" in row for row in map(" ".join, rows))


def test_decode_command_decodes_a_frame_from_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "request.bin").write_bytes(FRAME)
    assert main("decode", ["--file", str(tmp_path / "request.bin")]) == 0
    assert json.loads(capsys.readouterr().out)["api"] == "Metadata"
