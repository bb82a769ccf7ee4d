"""`kafkaproto decode`, `encode`, `show` and `apis`: their output and one-line errors."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.api import APIS
from kafkaproto.command_line import main
from kafkaproto.header import RequestHeader, encode_request_header, encode_response_header
from kafkaproto.json_form import to_json
from kafkaproto.messages.list_offsets import LIST_OFFSETS_REQUEST_V6, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.metadata import METADATA_RESPONSE_V9, MetadataResponse

REQUEST = ListOffsetsRequest(isolation_level=1, topics=[ListOffsetsTopic("t")])
DATA = LIST_OFFSETS_REQUEST_V6.encode(REQUEST)
SCRIPT = Path(sys.executable).with_name("kafkaproto")
LIST_OFFSETS = ("--api", "list-offsets", "--version", "6")


def run(capsys: pytest.CaptureFixture[str], command: str, *arguments: str) -> str:
    assert main(command, arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_decode_command_prints_the_message_and_the_offset_of_each_field(capsys: pytest.CaptureFixture[str]) -> None:
    decoded: dict[str, Any] = json.loads(run(capsys, "decode", *LIST_OFFSETS, "--hex", DATA.hex(" ")))
    assert (decoded["api"], decoded["kind"], decoded["version"]) == ("ListOffsets", "request", 6)
    assert decoded["message"] == to_json(LIST_OFFSETS_REQUEST_V6, REQUEST)
    assert decoded["fields"][:4] == [
        {"offset": 0, "size": 4, "path": "replicaId", "value": 0},
        {"offset": 4, "size": 1, "path": "isolationLevel", "value": 1},
        {"offset": 5, "size": 1, "path": "topics", "value": "(1 items)"},
        {"offset": 6, "size": 2, "path": "topics[0].name", "value": "t"},
    ]
    assert "left" not in decoded


def test_decode_command_accepts_files_of_bytes_and_of_hex_digits(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "bytes").write_bytes(DATA)
    (tmp_path / "hex").write_text(DATA.hex("\n"))
    from_bytes = run(capsys, "decode", *LIST_OFFSETS, "--file", str(tmp_path / "bytes"))
    assert from_bytes == run(capsys, "decode", *LIST_OFFSETS, "--file", str(tmp_path / "hex"), "--hex")
    assert from_bytes == run(capsys, "decode", *LIST_OFFSETS, "--hex", DATA.hex())


def test_decode_command_prints_the_number_of_bytes_left_after_the_message(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert json.loads(run(capsys, "decode", *LIST_OFFSETS, "--hex", DATA.hex() + "ffff"))["left"] == 2


def test_decode_command_decodes_request_and_response_headers(capsys: pytest.CaptureFixture[str]) -> None:
    out = bytearray()
    encode_request_header(RequestHeader(2, 6, 7, "me"), out)
    decoded = json.loads(run(capsys, "decode", *LIST_OFFSETS, "--header", "--hex", (out + DATA).hex()))
    header = {"requestApiKey": 2, "requestApiVersion": 6, "correlationId": 7, "clientId": "me"}
    assert decoded["header"] == header
    assert decoded["message"] == to_json(LIST_OFFSETS_REQUEST_V6, REQUEST)
    assert [f["offset"] for f in decoded["fields"] if f["path"] in ("correlationId", "replicaId")] == [4, len(out)]
    response_bytes = bytearray()
    encode_response_header(3, 9, 8, response_bytes)
    response_bytes += METADATA_RESPONSE_V9.encode(MetadataResponse(cluster_id="c"))
    options = ("--api", "3", "--version", "9", "--response", "--header")
    decoded = json.loads(run(capsys, "decode", *options, "--hex", response_bytes.hex()))
    assert (decoded["kind"], decoded["header"]["correlationId"], decoded["message"]["clusterId"]) == (
        "response",
        8,
        "c",
    )


def test_encode_command_restores_the_bytes_that_the_decode_command_decoded(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    decoded = run(capsys, "decode", *LIST_OFFSETS, "--hex", DATA.hex())
    for name, text in (("decoded", decoded), ("message", json.dumps(json.loads(decoded)["message"]))):
        (tmp_path / name).write_text(text)
        assert run(capsys, "encode", *LIST_OFFSETS, "--hex", "--file", str(tmp_path / name)) == DATA.hex() + "\n"


def test_encode_command_accepts_the_piped_output_of_the_decode_command() -> None:
    decoded = subprocess.run([SCRIPT, "decode", *LIST_OFFSETS], input=DATA, capture_output=True, check=True, timeout=20)
    encoded = subprocess.run(
        [SCRIPT, "encode", *LIST_OFFSETS], input=decoded.stdout, capture_output=True, check=True, timeout=20
    )
    assert encoded.stdout == DATA
    assert decoded.stderr + encoded.stderr == b""


def test_show_command_prints_the_fields_and_the_generated_code_of_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "show", "fetch", "12")
    assert text.startswith(
        "Fetch, key 1, version 12: request header 2, response header 1\n\nrequest\n  replicaId: Int32\n"
    )
    assert "\n  topics: CompactArray(FetchTopic)\n    topic: CompactString\n" in text
    assert "\n  clusterId (tag 0): CompactNullableString\n  (tags)\n" in text
    assert text.count("def decode(view, pos, end):") == text.count("def encode(o, out, splices):") == 2
    assert "def " not in run(capsys, "show", "Fetch", "12", "--layout")


@pytest.mark.parametrize("key", APIS)
def test_show_command_prints_the_fields_of_request_and_response_of_every_api(
    key: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in {APIS[key].min_version, APIS[key].max_version}:
        assert f"key {key}, version {version}" in run(capsys, "show", str(int(key)), str(version), "--layout")


def test_apis_command_lists_api_versions_of_the_codec_or_of_a_given_kafka_release(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = run(capsys, "apis").splitlines()
    assert ours[1].split() == ["0", "Produce", "0-13", "9"]
    assert len(ours) == 1 + len(APIS)
    old = run(capsys, "apis", "--release", "2.8").splitlines()
    assert [line.split() for line in old[1:6]] == [
        ["0", "Produce", "0-9", "9"],
        ["1", "Fetch", "0-12", "12"],
        ["2", "ListOffsets", "0-6", "6"],
        ["3", "Metadata", "0-11", "9"],
        ["4", "LeaderAndIsr", "0-5"],
    ]


@pytest.mark.parametrize(
    ("command", "arguments", "text"),
    [
        ("decode", ("--api", "fish", "--version", "1", "--hex", "00"), "no API is called 'fish'"),
        ("decode", ("--api", "metdata", "--hex", "00"), "no API is called 'metdata'; did you mean \"Metadata\"?"),
        ("encode", ("--api", "metdata"), "no API is called 'metdata'; did you mean \"Metadata\"?"),
        ("encode", ("--data", "offset-comit-value"), "no data structure is called 'offset-comit-value'; did you mean"),
        ("encode", ("--api", "metadata"), "--version N is missing; give the version of Metadata as N"),
        ("decode", ("--data", "ofset-commit-value", "--hex", "00"), 'did you mean "OffsetCommitValue"?'),
        ("decode", ("--api", "metadata", "--hex", "00"), "--version N is missing"),
        ("decode", ("--api", "fetch", "--version", "99", "--hex", "00"), "only Fetch v0 to v18"),
        ("decode", (*LIST_OFFSETS, "--hex", "0g"), "is not hexadecimal"),
        ("decode", (*LIST_OFFSETS, "--hex", DATA.hex()[:14]), "ListOffsetsRequest.topics[0].name at byte 6"),
        ("decode", (*LIST_OFFSETS, "--file", "/nowhere"), "cannot read /nowhere: No such file"),
        ("encode", (*LIST_OFFSETS,), "not valid JSON"),
        ("encode", (*LIST_OFFSETS, "--file", "/nowhere"), "cannot read /nowhere: No such file"),
        ("apis", ("--release", ""), "unknown release ''"),
        ("apis", ("--release", "0.7"), "unknown release '0.7'; known releases are 0.9"),
        ("show", ("fetch", "-1"), "v-1"),
    ],
)
def test_codec_commands_with_invalid_input_print_1_error_line_and_exit_with_2(
    command: str,
    arguments: tuple[str, ...],
    text: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{")))
    assert main(command, arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"kafkaproto {command}: ")
    assert text in err


def test_error_of_the_encode_command_for_an_invalid_value_names_the_field(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "message").write_text(json.dumps({"replicaId": 2**31, "isolationLevel": 0, "topics": []}))
    assert main("encode", (*LIST_OFFSETS, "--file", str(tmp_path / "message"))) == 2
    assert "ListOffsetsRequest.replica_id" in capsys.readouterr().err


def test_encode_command_prints_1_error_line_for_deeply_nested_json_or_a_huge_number(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ops = f'[{{"key": "k", "value": 1{"0" * 400}, "remove": false}}]'
    large = f'{{"entries": [{{"entity": [], "ops": {ops}}}], "validateOnly": false}}'
    for text, why in (("[" * 100_000, "deeper than any Kafka message"), (large, "ops[0].value in v1")):
        (tmp_path / "message").write_text(text)
        options = ("--api", "alter-client-quotas", "--version", "1", "--file", str(tmp_path / "message"))
        assert main("encode", options) == 2
        error = capsys.readouterr().err
        assert why in error and error.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_apis_command_prints_a_single_error_line_if_the_output_device_is_full() -> None:
    with open("/dev/full", "wb") as full:
        completed = subprocess.run(
            [sys.executable, "-m", "kafkaproto.cli", "apis"], stdout=full, stderr=subprocess.PIPE
        )
    assert (completed.returncode, completed.stderr) == (
        2,
        b"kafkaproto apis: cannot write to standard output: No space left on device\n",
    )


def test_encode_and_decode_commands_convert_values_of_consumer_offsets_records(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ("--data", "offset-commit-value", "--version", "3")
    fields = {"offset": 5, "leaderEpoch": 1, "metadata": "x", "commitTimestamp": 7}
    (tmp_path / "json").write_text(json.dumps(fields))
    digits = run(capsys, "encode", *options, "--hex", "--file", str(tmp_path / "json")).strip()
    decoded = json.loads(run(capsys, "decode", *options, "--hex", digits))
    assert (decoded["data"], decoded["version"], decoded["message"]) == ("OffsetCommitValue", 3, fields)
    assert decoded["fields"][2] == {"offset": 12, "size": 3, "path": "metadata", "value": "x"}
    (tmp_path / "message.json").write_text(json.dumps(decoded))
    assert run(capsys, "encode", *options, "--hex", "--file", str(tmp_path / "message.json")).strip() == digits
    assert "commitTimestamp: Int64" in run(capsys, "show", "offset-commit-value", "3")
    listed = run(capsys, "apis", "--data")
    assert "OffsetCommitKey" in listed and "__consumer_offsets" in listed


@pytest.mark.parametrize(
    ("arguments", "error_text"),
    [
        (("decode", "--data", "nothing", "--version", "0", "--hex", "00"), "kafkaproto apis --data"),
        (("decode", "--data", "voters-record", "--version", "7", "--hex", "00"), "VotersRecord has no v7"),
        (("decode", "--data", "voters-record", "--version", "0", "--hex", "00", "--response"), "--response"),
        (("apis", "--data", "--release", "2.8"), "cannot be combined"),
    ],
)
def test_decode_and_apis_commands_print_1_error_line_if_the_option_data_is_invalid(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], error_text: str
) -> None:
    assert main(arguments[0], arguments[1:]) == 2
    out, err = capsys.readouterr()
    assert out == "" and error_text in err and err.count("\n") == 1
