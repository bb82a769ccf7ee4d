"""`kafkaproto trace show`: lines for people, JSON for programs, and what it says of files that are not as they should be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafkaproto.api import codec
from kafkaproto.header import RequestHeader, encode_request_header, encode_response_header
from kafkaproto.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kafkaproto.trace import format as trace_format
from kafkaproto.trace.command_line import main
from kafkaproto.trace.format import Exchange


def shown(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, list[str], str]:
    status = main(["show", *map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out.splitlines(), err


def test_a_line_for_each_request_and_event(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines, err = shown(capsys, folder)
    assert (status, err) == (0, "")
    first, wrong, silent = [line for line in lines if ": Produce v9" in line]
    assert " a: Produce v9 #1, 1" in first and "B out" in first
    assert wrong.endswith("UNKNOWN_TOPIC_OR_PARTITION") and "no answer" in silent
    assert [line for line in lines if "Fetch v11" in line and "throttled 300 ms" in line]
    assert sum("opened:" in line for line in lines) == 2
    assert [line for line in lines if "throttle:" in line and "rule_id" in line]


def test_only_what_was_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(shown(capsys, folder, "--client", "b")[1]) == 2
    assert len(shown(capsys, folder, "--api", "Produce")[1]) == 3
    status, lines, err = shown(capsys, folder, "--api", "Produces")
    assert (status, lines) == (2, []) and "no such API; for example" in err


def test_moves_of_high_watermarks_are_shown_to_who_asks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not [line for line in shown(capsys, folder)[1] if "high watermark" in line]
    _, lines, _ = shown(capsys, folder, "--state")
    first, second = [line for line in lines if "high watermark" in line]
    assert first.endswith("broker 0: t-0: high watermark 1, stable 1, log 0 to 1") and "t-0: high watermark 2" in second
    told = [json.loads(line) for line in shown(capsys, folder, "--state", "--json")[1]]
    states = [(one["state"], one["partition"], one["begins"], one["high_watermark"]) for one in told if "state" in one]
    assert states == [("t", 0, True, 1), ("t", 0, False, 2)]


def test_json_has_both_messages(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines, _ = shown(capsys, folder, "--json")
    told = [json.loads(line) for line in lines]
    first = next(one for one in told if one.get("api") == "Produce")
    assert first["request"]["topicData"][0]["name"] == "t"
    assert first["response"]["responses"][0]["partitionResponses"][0]["baseOffset"] == 0
    assert first["request_records"][0] > 1000
    assert next(one for one in told if one.get("event") == "throttle")["throttle_ms"] == 300


def test_a_torn_end_is_told_and_the_rest_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "r-1.kptrace"
    whole = len(shown(capsys, path)[1])
    path.write_bytes(path.read_bytes()[:-3])
    status, lines, err = shown(capsys, path)
    assert status == 1 and len(lines) == whole - 1 and "are no whole entry" in err and str(path) in err


def test_what_is_no_trace_is_told_after_what_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.kptrace").write_bytes(b"something else")
    status, lines, err = shown(capsys, folder)
    assert status == 2 and lines and "s.kptrace is no trace" in err
    status, lines, err = shown(capsys, folder / "nowhere")
    assert (status, lines) == (2, []) and "holds no trace" in err


def test_a_frame_that_cannot_be_read_is_shown_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = Exchange(1, 0, 1, 0, 0, 0, 0, 0, 0, True, False, False, 3, 0, b"\x00\x00\x00", b"", (), ())
    path = tmp_path / "x.kptrace"
    path.write_bytes(trace_format.header({}) + trace_format.exchange(damaged) + trace_format.event("e", {"seq": 2}))
    status, lines, _ = shown(capsys, path)
    assert status == 0 and "cannot be read" in lines[0] and lines[1].endswith("e: ")
    assert "trouble" in json.loads(shown(capsys, path, "--json")[1][0])


def test_versions_that_a_broker_does_not_know_are_shown_as_it_told_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In version 0, whatever was asked for (KIP-511); the request of a version that nobody knows is told as its header."""
    answer = bytearray()
    encode_response_header(18, 0, 7, answer)
    codec(18, 0).encode_response(ApiVersionsResponse(35, [ApiVersion(18, 0, 3)]), answer, None)
    path = tmp_path / "x.kptrace"
    path.write_bytes(trace_format.header({}))
    for version in (4, 99):
        asked = bytearray()
        encode_request_header(RequestHeader(18, version, 7, "me"), asked)
        if version == 4:
            codec(18, 4).encode_request(ApiVersionsRequest("its-name", "1.2"), asked, None)
        one = Exchange(1, 0, 1, 0, 0, 0, 0, 0, 0, True, False, False, 3, 0, bytes(asked), bytes(answer), (), ())
        with path.open("ab") as file:
            file.write(trace_format.exchange(one))
    _, lines, _ = shown(capsys, path)
    assert lines[0].endswith("UNSUPPORTED_VERSION") and "UNSUPPORTED_VERSION, cannot be read" in lines[1]
    known, unknown = (json.loads(line) for line in shown(capsys, path, "--json")[1])
    assert known["request"]["clientSoftwareName"] == "its-name" and "trouble" not in known
    assert (unknown["version"], unknown["request"], bool(unknown["trouble"])) == (99, None, True)
    for one in (known, unknown):
        assert one["response"] == {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}]}
