"""The README: short enough to read, and true where a program can check it. `tests/documentation` runs its code blocks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from kafkaproto.broker.config.effects import REFUSED
from kafkaproto.pipeline import session
from tests.documentation import status

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
MOST_LINES = 120


def table_rows(part: str) -> list[list[str]]:
    lines = [line for line in part.splitlines() if line.startswith("|") and not re.fullmatch(r"[|\-: ]+", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_readme_has_at_most_120_lines_and_mentions_the_main_commands() -> None:
    assert len(README.splitlines()) <= MOST_LINES
    for text in ("pip install", "kafka_cluster", "kafkaproto broker", "spark.read", "make demo", "make test", "kfake"):
        assert text in README


def test_links_in_the_readme_are_absolute_https_urls_or_anchors() -> None:
    assert [link for link in re.findall(r"\]\(([^)\s]*)", README) if not link.startswith(("https:", "#"))] == []


def test_make_targets_named_in_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", README)) <= targets


def test_spark_connector_version_in_the_readme_is_the_tested_version() -> None:
    assert re.findall(r"org\.apache\.spark:\S+?:[\d.]+\d", README) == [session.CONNECTOR]


def test_readme_feature_table_agrees_with_unsupported_settings_and_missing_apis() -> None:
    rows = {row[0]: row[1] for row in table_rows(README)}
    missing = set(status.missing_apis())
    assert rows["SASL, TLS, ACLs"] == "not yet"
    assert "authorizer.class.name" in REFUSED
    assert not missing & {"JoinGroup", "ConsumerGroupHeartbeat", "EndTxn", "TxnOffsetCommit"}


def test_kafkaproto_command_on_windows_exits_with_a_one_line_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kafkaproto import cli

    monkeypatch.setattr(sys, "platform", "win32")
    assert cli.main() == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "Linux and macOS" in err
