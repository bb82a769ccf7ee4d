"""`kafkaproto trace show`: lines for people, JSON for programs, and errors for damaged files."""

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


def test_trace_show_command_prints_one_line_per_request_and_event(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines, err = shown(capsys, folder)
    assert (status, err) == (0, "")
    first, wrong, silent = [line for line in lines if ": Produce v9" in line]
    assert " a: Produce v9 #1, 1" in first and "B out" in first
    assert wrong.endswith("UNKNOWN_TOPIC_OR_PARTITION") and "no response" in silent
    assert [line for line in lines if "Fetch v11" in line and "throttled 300 ms" in line]
    assert sum("opened:" in line for line in lines) == 2
    assert [line for line in lines if "throttle:" in line and "rule_id=" in line]
    assert [line for line in lines if "opened: " in line and " listener=PLAINTEXT " in line]


def test_trace_show_command_filters_entries_by_client_and_api(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(shown(capsys, folder, "--client", "b")[1]) == 2
    assert len(shown(capsys, folder, "--api", "Produce")[1]) == 3
    status, lines, err = shown(capsys, folder, "--api", "Produces")
    assert (status, lines) == (2, []) and "no such API; for example" in err


def test_trace_show_command_prints_high_watermark_changes_only_with_option_state(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not [line for line in shown(capsys, folder)[1] if "high watermark" in line]
    _, lines, _ = shown(capsys, folder, "--state")
    first, second = [line for line in lines if "high watermark" in line]
    assert first.endswith("broker 0: t-0: high watermark 1, stable 1, log 0 to 1") and "t-0: high watermark 2" in second
    lines_of_states = [json.loads(line) for line in shown(capsys, folder, "--state", "--json")[1]]
    states = [
        (state_line["state"], state_line["partition"], state_line["begins"], state_line["high_watermark"])
        for state_line in lines_of_states
        if "state" in state_line
    ]
    assert states == [("t", 0, True, 1), ("t", 0, False, 2)]


def test_trace_show_command_with_json_prints_requests_and_responses(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines, _ = shown(capsys, folder, "--json")
    decoded_lines = [json.loads(line) for line in lines]
    first = next(decoded_line for decoded_line in decoded_lines if decoded_line.get("api") == "Produce")
    assert first["request"]["topicData"][0]["name"] == "t"
    assert first["response"]["responses"][0]["partitionResponses"][0]["baseOffset"] == 0
    assert first["request_records"][0] > 1000
    assert (
        next(decoded_line for decoded_line in decoded_lines if decoded_line.get("event") == "throttle")["throttle_ms"]
        == 300
    )


def test_trace_show_command_prints_complete_entries_of_a_truncated_file_and_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "r-1.kptrace"
    whole = len(shown(capsys, path)[1])
    path.write_bytes(path.read_bytes()[:-3])
    status, lines, err = shown(capsys, path)
    assert status == 1 and len(lines) == whole - 1 and "are an incomplete entry" in err and str(path) in err


def test_trace_show_command_prints_valid_files_and_an_error_for_an_invalid_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "s.kptrace").write_bytes(b"something else")
    status, lines, err = shown(capsys, folder)
    assert status == 2 and lines and "s.kptrace is not a trace" in err
    status, lines, err = shown(capsys, folder / "nowhere")
    assert (status, lines) == (2, []) and "contains no trace" in err


def test_trace_show_command_says_that_an_undecodable_frame_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = Exchange(1, 0, 1, 0, 0, 0, 0, 0, 0, True, False, False, 3, 0, b"\x00\x00\x00", b"", (), ())
    path = tmp_path / "x.kptrace"
    path.write_bytes(trace_format.header({}) + trace_format.exchange(damaged) + trace_format.event("e", {"seq": 2}))
    status, lines, _ = shown(capsys, path)
    assert status == 0 and "cannot be read" in lines[0] and lines[1].endswith("e: ")
    assert "problem" in json.loads(shown(capsys, path, "--json")[1][0])


def test_trace_show_command_decodes_an_unsupported_version_error_response_as_v0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The response is shown as version 0, whatever version was requested (KIP-511); of a request in an unknown version only the header is shown."""
    response_bytes = bytearray()
    encode_response_header(18, 0, 7, response_bytes)
    codec(18, 0).encode_response(ApiVersionsResponse(35, [ApiVersion(18, 0, 3)]), response_bytes, None)
    path = tmp_path / "x.kptrace"
    path.write_bytes(trace_format.header({}))
    for version in (4, 99):
        request_bytes = bytearray()
        encode_request_header(RequestHeader(18, version, 7, "me"), request_bytes)
        if version == 4:
            codec(18, 4).encode_request(ApiVersionsRequest("its-name", "1.2"), request_bytes, None)
        exchange = Exchange(
            1, 0, 1, 0, 0, 0, 0, 0, 0, True, False, False, 3, 0, bytes(request_bytes), bytes(response_bytes), (), ()
        )
        with path.open("ab") as file:
            file.write(trace_format.exchange(exchange))
    _, lines, _ = shown(capsys, path)
    assert lines[0].endswith("UNSUPPORTED_VERSION") and "UNSUPPORTED_VERSION, cannot be read" in lines[1]
    supported, unsupported = (json.loads(line) for line in shown(capsys, path, "--json")[1])
    assert supported["request"]["clientSoftwareName"] == "its-name" and "problem" not in supported
    assert (unsupported["version"], unsupported["request"], bool(unsupported["problem"])) == (99, None, True)
    for exchange in (supported, unsupported):
        assert exchange["response"] == {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}]}
