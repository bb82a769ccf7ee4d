"""Frames of the worst row of a broken rule, field by field, even if they cannot be decoded completely."""

from __future__ import annotations

import struct
from pathlib import Path

from kafkaproto.api import ApiKey
from kafkaproto.pipeline.trace.audit.conversation import RULES
from kafkaproto.pipeline.trace.audit.rule import Outcome
from kafkaproto.pipeline.trace.report.frames import exchanges
from tests.support.pipeline.recorded import write
from tests.support.recording import Bench


def test_trace_report_shows_only_the_header_of_a_frame_with_an_unknown_api_version(
    tmp_path: Path,
) -> None:
    """The rule is from KIP-511. A rejected request has no header."""
    bench = Bench()
    for key in (3, 18):
        frame = struct.pack(">hhih1sb", key, 99, 7, 1, b"x", 0)
        client = bench.cluster.connect()
        client.expect(7, ApiKey.API_VERSIONS, 0)
        client.send_bytes(struct.pack(">i", len(frame)) + frame)
    write(tmp_path / "t", bench.entries)
    outcomes = [
        Outcome(rule, 2, 1, 1.0, [{"run": "r", "seq": exchange.seq}])
        for rule, exchange in zip(RULES, bench.exchanges, strict=False)
    ]
    exchange_texts = exchanges(tmp_path / "t", outcomes)
    [refused], [request, response] = (exchange_texts[exchange.rule.number] for exchange in outcomes)
    assert "request: Metadata v99, correlation id 7, client-id x\n" in refused
    assert "cannot be decoded from here on" in refused and "cannot be decoded from here on" in request
    assert "errorCode = 35" in response and "cannot be read" not in response
