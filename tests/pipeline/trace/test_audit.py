"""The audit, in Spark: what real clients did against our broker breaks no rule and exercises each; a fault that is planted breaks its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kafkaproto.broker.quota.windows import throttle_ms
from kafkaproto.pipeline.trace import tables as job
from kafkaproto.pipeline.trace.audit.__main__ import main
from kafkaproto.pipeline.trace.audit.command import FAILED, UNREADABLE, WARNED
from kafkaproto.pipeline.trace.audit.rule import BROKEN, ERROR, HOLDS, NOT_EXERCISED, WARNING, Outcome, Rule, Tables
from kafkaproto.pipeline.trace.audit.rules import RULES, audit
from kafkaproto.pipeline.trace.audit.verdict import as_json, left_out, status, text
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES, ddl
from kafkaproto.trace.format import Event
from kafkaproto.trace.reading import Trace, files_of
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.pipeline import broken, incomplete, patched
from tests.support.pipeline.clean import record
from tests.support.pipeline.recorded import traffic, write
from tests.support.pipeline.tables import rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.clients,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
    # py4j leaves its sockets to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

ROOT = Path(__file__).resolve().parents[3]
WITHOUT_TRANSACTIONS = "11 aborted"
"""The one rule that a broker without transactions exercises with no client: `broken.reads_transactions` does."""
AS_IT_IS = "as it is: "


@pytest.fixture(scope="module")
def out(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of that, made by Spark; beside them its trace, whose end is torn, and the tables that were made without Spark."""
    folder = tmp_path_factory.mktemp("run")
    trace, made = folder / "trace", folder / "out"
    record(trace)
    [file] = files_of(trace)
    with file.open("ab") as end:
        end.write(bytes(3))
    counts, [told] = job.build(trace, made, partial(job.with_spark, spark))
    assert told.torn and all(counts[run][table] for run in counts for table in TABLES)
    job.build(trace, made.parent / "other", job.without_spark)
    return made


def test_spark_makes_the_tables_that_are_made_without_it(out: Path) -> None:
    for table in TABLES:
        assert rows(out, table) == rows(out.parent / "other", table)


def test_run_again_spark_reads_only_what_is_new_and_tells_what_is_bad(spark: Any, tmp_path: Path) -> None:
    trace, made = tmp_path / "trace", tmp_path / "out"
    with_spark = partial(job.with_spark, spark)
    write(trace, traffic(), "a")
    assert list(job.build(trace, made, with_spark)[0]) == ["a"]
    torn = write(trace, traffic(), "b")
    torn.write_bytes(torn.read_bytes()[:-1])
    counts, [told] = job.build(trace, made, with_spark)
    assert list(counts) == ["b"] and told.torn and str(torn) in told.text
    assert {row.run: row.n for row in job.read(spark, made, "requests").groupBy("run").agg({"*": "count"}).toDF("run", "n").collect()} == {
        "a": 8,
        "b": 7,
    }  # fmt: skip
    for table, columns in TABLES.items():
        found = job.read(spark, made, table)
        assert [(f.name, f.dataType.simpleString()) for f in found.schema] == [(c.name, c.type) for c in columns]
    assert job.read(spark, tmp_path / "none", "batches").collect() == []


# ---- planted faults ----------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """rules: of each run, the broken rows of each rule as (seq, client id), worst first. planted: of a patched run, where. missing, lacks:
    of a run that is not whole, how many entries it lacks, and how many the audit says. left_out: the rules of which it has undecided rows."""

    rules: dict[str, dict[str, list[tuple[int, str | None]]]]
    planted: dict[str, int]
    missing: dict[str, int]
    lacks: dict[str, int]
    left_out: dict[str, set[str]]


@pytest.fixture(scope="module")
def found(spark: Any, out: Path) -> Iterator[Found]:
    """One audit of every fault, each in a run of its own: patched tables of the clean run; each scene with a broken broker, and with one
    that is as it is; and the clean run with one thing after the other missing."""
    tables: patched.Rows = {table: [] for table in TABLES}
    planted = {}
    clean = {table: rows(out.parent / "other", table) for table in TABLES}
    for fault in patched.FAULTS:
        copy = deepcopy(clean)
        planted[fault.__name__] = fault(copy)
        for table, some in copy.items():
            tables[table] += [one | {"run": fault.__name__} for one in some]
    for name, scene in broken.FAULTS.items():
        for run, is_broken in ((AS_IT_IS + name, False), (name, True)):
            made = Rows(run, broken.EPOCH_MS, 0)
            for entry in broken.play(scene, is_broken):
                for table, one in made.of(entry):
                    tables[table].append(one)
    _add(tables, incomplete.sparse(tables))
    _add(tables, incomplete.captures(clean))
    missing = _lacking(out.parent / "trace", tables)
    clients = {(one["run"], one["seq"]): one["client_id"] for one in tables["requests"]}
    clients |= _moved_by(tables)
    frames = [_frame(spark, table, some).cache() for table, some in tables.items()]
    rules: dict[str, dict[str, list[tuple[int, str | None]]]] = {run: {} for run, _ in clients}
    audited = Tables(*frames)
    left_out: dict[str, set[str]] = {}
    for rule in RULES:
        checked = rule.check(audited)
        worst_first = checked.where("coalesce(broken, true)").orderBy(checked.excess.desc_nulls_last(), "run", "seq")
        for one in worst_first.collect():
            if one.broken is None:
                left_out.setdefault(one.run, set()).add(rule.number)
            else:
                rules[one.run].setdefault(rule.number, []).append((one.seq, clients.get((one.run, one.seq))))
    lacks = {one.run: one.entries for one in audited.sql("SELECT run, entries FROM {gaps}").collect()}
    yield Found(rules, planted, missing, lacks, left_out)
    for frame in frames:
        frame.unpersist()


def _moved_by(tables: patched.Rows) -> dict[tuple[str, int], str | None]:
    """Whose request it was that moved a high watermark: in a scene, the last that had begun."""
    begun: dict[str, list[tuple[int, str | None]]] = {}
    for one in tables["requests"]:
        begun.setdefault(one["run"], []).append((one["seq"], one["client_id"]))
    return {
        (move["run"], move["seq"]): max((one for one in begun[move["run"]] if one[0] < move["seq"]), default=(0, None))[
            1
        ]
        for move in tables["state"]
        if move["run"] in broken.FAULTS
    }


def _add(tables: patched.Rows, more: patched.Rows) -> None:
    for table, some in more.items():
        tables[table] += some


def _lacking(trace: Path, tables: patched.Rows) -> dict[str, int]:
    """Add a run for each thing that may be missing from a trace; how many entries it lacks."""
    [file] = files_of(trace)
    whole, missing = Trace(file), {}
    for run, left in incomplete.lacking(list(whole.entries())):
        missing[run] = incomplete.missing(left)
        made = Rows(run, whole.meta["wall_ms"], whole.meta["at_ns"])
        for entry in [Event("meta", {**whole.meta, "seq": 0, "broker": -1}), *left]:
            for table, one in made.of(entry):
                tables[table].append(one)
    return missing


def _frame(spark: Any, table: str, some: list[dict[str, Any]]) -> Any:
    return spark.createDataFrame([tuple(one[c.name] for c in TABLES[table]) for one in some], ddl(table)).coalesce(2)


@pytest.mark.parametrize("name", broken.FAULTS)
def test_a_broken_broker_is_found_out_by_its_rules_at_the_request_that_was_hit(found: Found, name: str) -> None:
    fault, rules = broken.FAULTS[name], found.rules[name]
    assert fault.must <= rules.keys() <= fault.must | fault.may, rules
    assert all(rules[number][0][1] == broken.PLANTED for number in fault.must), rules


def test_the_same_scenes_with_the_broker_as_it_is_have_no_finding(found: Found) -> None:
    as_they_are = {run: rules for run, rules in found.rules.items() if AS_IT_IS in run}
    assert len(as_they_are) == 2 * len(broken.FAULTS) and not any(as_they_are.values()), as_they_are


@pytest.mark.parametrize("fault", patched.FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_written_into_a_trace_breaks_its_rule_first_at_its_row(
    found: Found, fault: Callable[[patched.Rows], int]
) -> None:
    planted, rules = patched.FAULTS[fault], found.rules[fault.__name__]
    assert {planted.must} <= rules.keys() <= {planted.must} | planted.may, rules
    assert rules[planted.must][0][0] == found.planted[fault.__name__]


def test_what_is_missing_makes_no_finding_is_counted_and_leaves_out_what_it_may_explain(found: Found) -> None:
    assert {run: found.rules[run] for run in found.missing if found.rules[run]} == {}
    assert {run: found.lacks.get(run, 0) for run in found.missing} == found.missing and any(found.missing.values())
    left_out = [rules for run, rules in found.left_out.items() if run in found.missing]
    assert set().union(*left_out) >= incomplete.EXPLAINED
    assert all(
        run in found.missing or run.startswith("sparse ") for run in found.left_out.keys() - {incomplete.BESIDE_A_HOLE}
    )


def test_what_happened_beside_a_hole_of_a_capture_is_no_finding(found: Found) -> None:
    assert "10" in found.left_out[incomplete.BESIDE_A_HOLE] and "10" not in found.rules[incomplete.BESIDE_A_HOLE]
    assert incomplete.FAR_FROM_A_HOLE not in found.left_out and "10" in found.rules[incomplete.FAR_FROM_A_HOLE]


@pytest.mark.parametrize("name", [*broken.FAULTS, *(fault.__name__ for fault in patched.FAULTS)])
def test_a_fault_between_missing_entries_is_found_only_by_rules_that_need_none_of_them(found: Found, name: str) -> None:
    whole, rules = found.rules[name], found.rules[f"sparse {name}"]
    left_out = found.left_out.get(f"sparse {name}", set())
    assert rules.keys() | left_out == whole.keys()
    assert not rules.keys() & incomplete.UNDECIDED and left_out <= incomplete.UNDECIDED | incomplete.PARTLY
    for rule in rules.keys() - left_out:
        some, all_ = [seq for seq, _ in rules[rule]], [seq * incomplete.SPARSE for seq, _ in whole[rule]]
        assert some and set(some) <= set(all_) if rule in incomplete.PARTLY else some == all_


def test_what_is_left_out_is_told_and_does_not_count_as_checked() -> None:
    rule = next(rule for rule in RULES if rule.number == "19")
    [line] = left_out([Outcome(rule, 0, 0, None, [], 3), Outcome(RULES[0], 5, 0, None, [])])
    assert line == "rule 19: 3 rows are left out, as what is missing may explain them"
    one = Outcome(rule, 0, 0, None, [], 3)
    assert one.verdict == NOT_EXERCISED and f"note: {line}" in text([one]).splitlines()
    told = as_json([one], ["a file is torn"])
    assert told["remarks"] == ["a file is torn", line] and told["rules"][0]["left_out"] == 3


def test_every_rule_has_a_fault_that_breaks_it() -> None:
    brokers = set().union(*(one.must for one in broken.FAULTS.values()))
    assert brokers | {one.must for one in patched.FAULTS.values()} == {rule.number for rule in RULES}


def test_what_is_broken_is_told_with_its_numbers_its_frames_and_its_query(spark: Any, out: Path) -> None:
    tables = {table: rows(out.parent / "other", table) for table in TABLES}
    seq = patched.answered_while_muted(tables)
    audited = Tables(*(_frame(spark, table, some) for table, some in tables.items()))
    outcomes = audit(audited, [rule for rule in RULES if rule.number == "3"])
    assert [(one.broken, len(one.sample), one.worst) for one in outcomes] == [(1, 1, 1.0)] and status(
        outcomes
    ) == FAILED
    said = text(outcomes)
    assert "rule 3 (error): no request of a connection is handled while it is muted; the worst rows:" in said
    assert f", seq {seq}, " in said and f"kafkaproto trace cut TRACE --seq {seq} --out rule-3.pcap" in said
    told = json.loads(json.dumps(as_json(outcomes)))["rules"][0]
    assert told["sample"] == outcomes[0].sample
    assert told["query"]["name"] == "kafkaproto.pipeline.trace.audit.throttling.muted"
    assert told["query"]["source"].startswith("def muted(tables: Tables) -> DataFrame:")


# ---- arithmetic, verdicts, the command ---------------------------------------------------------------------------------------


def test_the_audits_arithmetic_is_that_of_the_broker_to_the_millisecond(spark: Any) -> None:
    cases = [
        (rate / 7, bound / 3, window)
        for rate in (900.5, 10_500, 1e9)
        for bound in (1, 333.3, 30_000)
        for window in (1, 999, 10_500)
    ]
    cases += [(15.0, 10.0, 1001), (15.0, 10.0, 1003), (10.001, 10.0, 5000)]  # halves
    requests, at = [], 0
    for rate, bound, window in cases:
        for quota in ("Produce", "Request"):
            wait = (
                throttle_ms(rate, bound, window) if quota == "Produce" else min(throttle_ms(rate, bound, window), 1000)
            )
            if 0 < wait < 2**31:
                at += 1
                told = dict.fromkeys(c.name for c in TABLES["requests"]) | {"run": "r", "seq": at, "held": False}
                told |= {"decided_ms": wait, "throttle_ms": wait, "throttle_quota": quota}
                told |= {"quota_rate": rate, "quota_bound": bound, "quota_window_ms": window}
                requests.append(tuple(told.values()))
    empty = {table: spark.createDataFrame([], ddl(table)) for table in TABLES}
    frame = spark.createDataFrame(requests, ddl("requests"))
    tables = Tables(**{**empty, "requests": frame})
    [one] = audit(tables, [rule for rule in RULES if rule.number == "4"])
    assert (one.checked, one.broken) == (len(requests), 0), one.sample
    assert len(requests) > 20


@pytest.mark.parametrize(("version", "verdict"), [(7, HOLDS), (8, BROKEN)])
def test_of_a_proxys_trace_an_answer_that_an_old_broker_may_have_kept_is_not_asked_about(
    spark: Any, out: Path, version: int, verdict: str
) -> None:
    """Who answers a Fetch in version 8 is of release 2.0 or later, which answers at once and, to who is throttled, without records."""
    tables = {table: rows(out.parent / "other", table) for table in TABLES}
    unknown = [column.name for column in TABLES["requests"] if column.broker_only]
    for row in tables["requests"]:
        row.update(dict.fromkeys(unknown))
    late = next(row for row in tables["requests"] if row["api"] == "Fetch" and (row["throttle_ms"] or 0) > 0)
    late |= {"api_version": version, "ready_ns": late["ready_ns"] + 5_000_000_000, "records_bytes": 10}
    audited = Tables(*(_frame(spark, table, some) for table, some in tables.items()))
    found = {
        one.rule.number: one.verdict for one in audit(audited, [r for r in RULES if r.number in ("5", "13", "17")])
    }
    assert found == {"5": verdict, "13": verdict, "17": HOLDS}


def test_what_nothing_exercised_does_not_hold(spark: Any, tmp_path: Path) -> None:
    outcomes = audit(Tables.of(spark, tmp_path), RULES[:3])
    assert {one.verdict for one in outcomes} == {NOT_EXERCISED} and status(outcomes) == UNREADABLE
    assert "0 hold" in text(outcomes).splitlines()[0]


def test_the_status_is_that_of_the_worst_severity() -> None:
    def broken(severity: str, count: int) -> Outcome:
        return Outcome(Rule("1", "", severity, lambda tables: tables.requests), 5, count, None, [])

    assert status([broken(ERROR, 0), broken(WARNING, 0)]) == 0
    assert status([broken(ERROR, 0), broken(WARNING, 1)]) == WARNED
    assert status([broken(ERROR, 1), broken(WARNING, 1)]) == FAILED
    assert broken(ERROR, 1).verdict == BROKEN and broken(ERROR, 0).verdict == HOLDS


def test_where_there_are_no_tables_nothing_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        assert main([str(folder)]) == UNREADABLE
        said = capsys.readouterr()
        assert said.out == "" and f"{folder} holds no tables" in said.err
    (tmp_path / "letters.txt").write_text("mine")
    assert main([str(tmp_path)]) == UNREADABLE and "is no folder of tables" in capsys.readouterr().err


def test_the_command_audits_a_clean_run_that_breaks_nothing_and_exercises_every_rule(out: Path, tmp_path: Path) -> None:
    told = tmp_path / "audit.json"
    command = [sys.executable, "-m", "kafkaproto.pipeline.trace.audit"]
    trace = out.parent / "trace"
    trace.joinpath("foreign.kptrace").write_bytes(b"a capture")
    command += [str(out), "--trace", str(trace), "--json", str(told)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "foreign.kptrace is no trace" in done.stderr and f"({len(RULES)} of {len(RULES)}): " in done.stderr
    found = json.loads(told.read_text())
    verdicts = {rule.number: HOLDS for rule in RULES} | {WITHOUT_TRANSACTIONS: NOT_EXERCISED}
    assert {one["rule"]: one["verdict"] for one in found["rules"]} == verdicts, done.stdout
    assert done.stdout.startswith(f"0 of {len(RULES)} rules broken, {len(RULES) - 1} hold") and found["status"] == 0
    assert "bytes at byte" in done.stdout.splitlines()[1] and found["remarks"]
