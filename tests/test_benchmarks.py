"""Benchmarks run, compare results before measuring, and report missed limits. Times are not checked here."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks.codec import cases, tables
from benchmarks.codec.rivals import by_construct, check
from benchmarks.codec.stock import stock
from benchmarks.report import limitation


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.codec", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_codec_benchmark_prints_no_ratio_for_a_library_that_lacks_the_api_version() -> None:
    completed = run("--quick", "--only", "ApiVersions response v[23]|iterate, lz4")
    assert completed.returncode == 0, completed.stderr
    rows = {
        line.split("|")[1].strip(): line.split("|")[2:-2] for line in completed.stdout.splitlines() if " | " in line
    }
    head = [name.strip() for name in rows["work"]]
    assert head == ["kafka-python", "aiokafka", "aiokafka (C)"]  # of the last table
    assert [float(ratio) > 0 for ratio in rows["iterate, lz4"]] == [True] * 3
    assert [float(ratio) > 0 for ratio in rows["ApiVersions response v2, 60 APIs"]] == [True] * 5
    assert rows["ApiVersions response v3, 60 APIs"][1].strip() == tables.MISSING, "aiokafka has no v3"


@pytest.mark.slow
def test_codec_benchmark_exits_with_an_error_if_its_name_pattern_matches_nothing() -> None:
    completed = run("--only", "no such case")
    assert completed.returncode == 2 and "no benchmark title matches --only" in completed.stderr


def test_codec_benchmark_raises_an_error_if_two_codecs_decode_differently() -> None:
    with pytest.raises(ValueError, match="another codec decodes the same bytes differently from kafkaproto"):
        check(b"\x00", b"\x01")


@pytest.mark.parametrize("case", cases.message_cases(), ids=lambda case: case.title)
def test_python_library_construct_decodes_each_benchmark_message_like_kafkaproto(case: cases.MessageCase) -> None:
    construct_type = stock(case.layout)
    data = case.layout.encode(case.make())
    by_construct(construct_type, data)
    with pytest.raises(ValueError, match="another codec decodes the same bytes differently from kafkaproto"):
        by_construct(construct_type, data + b"\x00")


def test_codec_benchmark_shows_median_speed_ratios_and_marks_those_below_the_limit() -> None:
    title = "Metadata response v12, 100 topics of 12 partitions"
    measured = {
        (title, "decode"): {"ours": [1.0, 2.0, 1.0], "kafka-python": [3.0, 4.0, 9.0], "kio (Rust)": [0.4, 0.8, 1]}
    }
    (cell,) = tables.cells(measured)
    assert cell.ratios == {"kafka-python": 3.0, "kio (Rust)": 0.4}
    assert cell.verdict() == "Python ≥ 1, kio (Rust) ≥ 0.5 **missed**"
    assert replace(cell, ratios={"construct": 0.9}).verdict() == "Python ≥ 1 **missed**"


def test_benchmark_report_has_a_sentence_about_limitations_only_if_one_is_given() -> None:
    assert limitation("tests used the machine.") == " Limitation: tests used the machine."
    assert limitation("") == ""


def test_every_codec_benchmark_has_a_unique_name() -> None:
    assert len(cases.all_cases()) == len([*cases.message_cases(), *cases.record_cases()])


@pytest.mark.slow
def test_growth_benchmark_prints_a_row_for_each_of_its_three_measurements() -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", "--quick"], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.count("1: 1") == 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the race reads /proc and pins cores")
def test_round_trip_benchmark_returns_speed_ratios_of_broker_and_bare_asyncio_server() -> None:
    from benchmarks import race

    racers = [race.ours(), race.floor()]
    todo = [cell for cell in race.cells() if cell.name.startswith("round trips")]
    with race.running(racers):
        race.run_cells(racers, todo, rounds=1)
    rows, _ = race.ratio_rows(racers, todo)
    assert [row[0] for row in rows] == [cell.name for cell in todo]
    assert all(float(row[1].split()[0]) > 0 for row in rows)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the race reads /proc and pins cores")
@pytest.mark.parametrize("name", ["quotas", "trace"])
def test_cost_benchmark_measures_round_trips_with_and_without_quotas_or_tracing(name: str) -> None:
    from benchmarks import costs, race

    feature, free = costs.FEATURES[name], race.ours()
    free.name = costs.WITHOUT
    todo = [cell for cell in feature.cells if cell.name.startswith("round trips, pipelined")]
    with feature.start() as costly, race.running([free]):
        costly.name = costs.WITH
        race.run_cells([costly, free], todo, rounds=1)
    assert costly.seen.keys() == free.seen.keys() == {cell.name for cell in todo}
