"""The frames of a broken rule's worst row, field by field, also where they cannot be read to their ends."""

from __future__ import annotations

import struct
from pathlib import Path

from kafkaproto.api import ApiKey
from kafkaproto.pipeline.trace.audit.conversation import RULES
from kafkaproto.pipeline.trace.audit.rule import Outcome
from kafkaproto.pipeline.trace.report.frames import exchanges
from tests.support.pipeline.recorded import write
from tests.support.recording import Bench


def test_of_a_version_that_nobody_knows_the_header_is_shown_and_the_answer_in_the_version_that_it_has(
    tmp_path: Path,
) -> None:
    """KIP-511; and a request that was refused has none."""
    bench = Bench()
    for key in (3, 18):
        frame = struct.pack(">hhih1sb", key, 99, 7, 1, b"x", 0)
        client = bench.cluster.connect()
        client.expect(7, ApiKey.API_VERSIONS, 0)
        client.send_bytes(struct.pack(">i", len(frame)) + frame)
    write(tmp_path / "t", bench.entries)
    outcomes = [
        Outcome(rule, 2, 1, 1.0, [{"run": "r", "seq": one.seq}])
        for rule, one in zip(RULES, bench.exchanges, strict=False)
    ]
    shown = exchanges(tmp_path / "t", outcomes)
    [refused], [request, answer] = (shown[one.rule.number] for one in outcomes)
    assert "request: Metadata v99, correlation id 7, client-id x\n" in refused
    assert "cannot be read from here on" in refused and "cannot be read from here on" in request
    assert "errorCode = 35" in answer and "cannot be read" not in answer
