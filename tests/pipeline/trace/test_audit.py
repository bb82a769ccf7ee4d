"""The audit in Spark: real clients break no rule and exercise each rule; an injected fault breaks its own rule."""

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
from tests.support.pipeline import broken, broken_groups, broken_transactions, incomplete, patched
from tests.support.pipeline.clean import record
from tests.support.pipeline.recorded import traffic, write
from tests.support.pipeline.tables import rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.clients,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

ROOT = Path(__file__).resolve().parents[3]
CORRECT = "correct: "


@pytest.fixture(scope="module")
def out(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tables built by Spark, next to the trace, whose end is truncated, and the tables built without Spark."""
    folder = tmp_path_factory.mktemp("run")
    trace, tables_folder = folder / "trace", folder / "out"
    record(trace)
    [file] = files_of(trace)
    with file.open("ab") as end:
        end.write(bytes(3))
    counts, [notice] = job.build(trace, tables_folder, partial(job.with_spark, spark))
    assert notice.torn and all(counts[run][table] for run in counts for table in TABLES)
    job.build(trace, tables_folder.parent / "other", job.without_spark)
    return tables_folder


def test_trace_tables_built_with_and_without_spark_are_equal(out: Path) -> None:
    for table in TABLES:
        assert rows(out, table) == rows(out.parent / "other", table)


def test_second_spark_job_reads_only_the_new_trace_and_reports_the_cut_last_entry(spark: Any, tmp_path: Path) -> None:
    trace, tables_folder = tmp_path / "trace", tmp_path / "out"
    with_spark = partial(job.with_spark, spark)
    write(trace, traffic(), "a")
    assert list(job.build(trace, tables_folder, with_spark)[0]) == ["a"]
    torn = write(trace, traffic(), "b")
    torn.write_bytes(torn.read_bytes()[:-1])
    counts, [notice] = job.build(trace, tables_folder, with_spark)
    assert list(counts) == ["b"] and notice.torn and str(torn) in notice.text
    assert {row.run: row.n for row in job.read(spark, tables_folder, "requests").groupBy("run").agg({"*": "count"}).toDF("run", "n").collect()} == {
        "a": 8,
        "b": 7,
    }  # fmt: skip
    for table, columns in TABLES.items():
        frame = job.read(spark, tables_folder, table)
        assert [(f.name, f.dataType.simpleString()) for f in frame.schema] == [(c.name, c.type) for c in columns]
    assert job.read(spark, tmp_path / "none", "batches").collect() == []


# ---- injected faults --------------------------------------------------------------------------------------------------------


class Audited(NamedTuple):
    """The findings of an audit. rules: for each run, the broken rows of each rule as (seq, client id), worst first.

    faulty: the patched row of each patched run. missing, lacks: for incomplete runs, the number of missing entries and the number that the
    audit reports. left_out: the rules with undecided rows.
    """

    rules: dict[str, dict[str, list[tuple[int, str | None]]]]
    faulty: dict[str, int]
    missing: dict[str, int]
    lacks: dict[str, int]
    left_out: dict[str, set[str]]


@pytest.fixture(scope="module")
def audited(spark: Any, out: Path) -> Iterator[Audited]:
    """Audit all faults at once, each in its own run.

    The runs are patched tables of the clean run, each scene with a broken and with a correct broker, and incomplete copies of the clean
    run.
    """
    tables: patched.Rows = {table: [] for table in TABLES}
    faulty = {}
    clean = {table: rows(out.parent / "other", table) for table in TABLES}
    for fault in patched.FAULTS:
        copy = deepcopy(clean)
        faulty[fault.__name__] = fault(copy)
        for table, table_rows in copy.items():
            tables[table] += [row | {"run": fault.__name__} for row in table_rows]
    for name, scene in broken.FAULTS.items():
        for run, is_broken in ((CORRECT + name, False), (name, True)):
            row_builder = Rows(run, broken.EPOCH_MS, 0)
            for entry in broken.play(scene, is_broken):
                for table, row in row_builder.of(entry):
                    tables[table].append(row)
    _add(tables, incomplete.sparse(tables))
    _add(tables, incomplete.captures(clean))
    missing = _add_incomplete_runs(out.parent / "trace", clean, tables)
    clients = {(row["run"], row["seq"]): row["client_id"] for row in tables["requests"]}
    clients |= _moved_by(tables)
    frames = [_frame(spark, table, table_rows).cache() for table, table_rows in tables.items()]
    rules: dict[str, dict[str, list[tuple[int, str | None]]]] = {run: {} for run, _ in clients}
    audited = Tables(*frames)
    left_out: dict[str, set[str]] = {}
    for rule in RULES:
        checked = rule.check(audited)
        worst_first = checked.where("coalesce(broken, true)").orderBy(checked.excess.desc_nulls_last(), "run", "seq")
        for row in worst_first.collect():
            if row.broken is None:
                left_out.setdefault(row.run, set()).add(rule.number)
            else:
                rules[row.run].setdefault(rule.number, []).append((row.seq, clients.get((row.run, row.seq))))
    lacks = {row.run: row.entries for row in audited.sql("SELECT run, entries FROM {gaps}").collect()}
    yield Audited(rules, faulty, missing, lacks, left_out)
    for frame in frames:
        frame.unpersist()


def _moved_by(tables: patched.Rows) -> dict[tuple[str, int], str | None]:
    """Return the client whose request moved a high watermark or changed a group; in a scene, the last request that had begun."""
    requests_by_run: dict[str, list[tuple[int, str | None]]] = {}
    for row in tables["requests"]:
        requests_by_run.setdefault(row["run"], []).append((row["seq"], row["client_id"]))
    return {
        (move["run"], move["seq"]): max(
            (row for row in requests_by_run[move["run"]] if row[0] < move["seq"]), default=(0, None)
        )[1]
        for move in (*tables["state"], *(event for event in tables["events"] if event["kind"] == "group"))
        if move["run"] in broken.FAULTS
    }


def _add(tables: patched.Rows, more: patched.Rows) -> None:
    for table, added_rows in more.items():
        tables[table] += added_rows


def _add_incomplete_runs(trace: Path, clean: patched.Rows, tables: patched.Rows) -> dict[str, int]:
    """Add incomplete copies of the clean run to the tables, and return the number of entries that each lacks."""
    [file] = files_of(trace)
    whole, missing = Trace(file), {}
    for run, remaining in incomplete.lacking(list(whole.entries()), clean):
        missing[run] = incomplete.missing(remaining)
        row_builder = Rows(run, whole.meta["wall_ms"], whole.meta["at_ns"])
        for entry in [Event("meta", {**whole.meta, "seq": 0, "broker": -1}), *remaining]:
            for table, row in row_builder.of(entry):
                tables[table].append(row)
    return missing


def _frame(spark: Any, table: str, some: list[dict[str, Any]]) -> Any:
    return spark.createDataFrame([tuple(row[c.name] for c in TABLES[table]) for row in some], ddl(table)).coalesce(2)


@pytest.mark.parametrize("name", broken.FAULTS)
def test_audit_reports_each_injected_broker_bug_with_the_affected_client(audited: Audited, name: str) -> None:
    fault, rules = broken.FAULTS[name], audited.rules[name]
    assert fault.must <= rules.keys() <= fault.must | fault.may, rules
    assert all(rules[number][0][1] == broken.TARGET for number in fault.must), rules


def test_audit_reports_no_fault_if_the_broker_has_no_injected_bug(audited: Audited) -> None:
    correct_runs = {run: rules for run, rules in audited.rules.items() if CORRECT in run}
    assert len(correct_runs) == 2 * len(broken.FAULTS) and not any(correct_runs.values()), correct_runs


@pytest.mark.parametrize("fault", patched.FAULTS, ids=lambda fault: fault.__name__)
def test_audit_result_for_each_fault_injected_into_a_trace_names_the_faulty_row(
    audited: Audited, fault: Callable[[patched.Rows], int]
) -> None:
    patched_fault, rules = patched.FAULTS[fault], audited.rules[fault.__name__]
    assert {patched_fault.must} <= rules.keys() <= {patched_fault.must} | patched_fault.may, rules
    assert rules[patched_fault.must][0][0] == audited.faulty[fault.__name__]


def test_audit_reports_no_fault_that_missing_trace_entries_may_explain(audited: Audited) -> None:
    assert {run: audited.rules[run] for run in audited.missing if audited.rules[run]} == {}
    assert {run: audited.lacks.get(run, 0) for run in audited.missing} == audited.missing and any(
        audited.missing.values()
    )
    left_out = [rules for run, rules in audited.left_out.items() if run in audited.missing]
    assert set().union(*left_out) >= incomplete.EXPLAINED, left_out
    assert all(
        run in audited.missing or run.startswith("sparse ")
        for run in audited.left_out.keys() - {incomplete.BESIDE_A_HOLE}
    )


def test_audit_leaves_out_faults_in_rows_next_to_a_gap_in_a_packet_capture(audited: Audited) -> None:
    assert "10" in audited.left_out[incomplete.BESIDE_A_HOLE] and "10" not in audited.rules[incomplete.BESIDE_A_HOLE]
    assert incomplete.FAR_FROM_A_HOLE not in audited.left_out and "10" in audited.rules[incomplete.FAR_FROM_A_HOLE]


@pytest.mark.parametrize("name", [*broken.FAULTS, *(fault.__name__ for fault in patched.FAULTS)])
def test_audit_of_a_trace_with_gaps_reports_only_faults_that_gaps_cannot_explain(audited: Audited, name: str) -> None:
    whole, rules = audited.rules[name], audited.rules[f"sparse {name}"]
    left_out = audited.left_out.get(f"sparse {name}", set())
    assert rules.keys() | left_out == whole.keys()
    assert not rules.keys() & incomplete.UNDECIDED and left_out <= incomplete.UNDECIDED | incomplete.PARTLY
    for rule in rules.keys() - left_out:
        sparse_seqs, whole_seqs = [seq for seq, _ in rules[rule]], [seq * incomplete.SPARSE for seq, _ in whole[rule]]
        assert (
            sparse_seqs and set(sparse_seqs) <= set(whole_seqs)
            if rule in incomplete.PARTLY
            else sparse_seqs == whole_seqs
        )


def test_audit_says_how_many_faults_it_left_out_because_trace_entries_are_missing() -> None:
    rule = next(rule for rule in RULES if rule.number == "19")
    [line] = left_out([Outcome(rule, 0, 0, None, [], 3), Outcome(RULES[0], 5, 0, None, [])])
    assert line == "rule 19: 3 cases look broken but are left out, because missing entries may explain them"
    unexercised = Outcome(rule, 0, 0, None, [], 3)
    assert unexercised.verdict == NOT_EXERCISED and f"note: {line}" in text([unexercised]).splitlines()
    result_json = as_json([unexercised], ["a file is torn"])
    assert result_json["remarks"] == ["a file is torn", line] and result_json["rules"][0]["left_out"] == 3


def test_injected_faults_in_group_requests_break_every_audit_rule_about_groups() -> None:
    assert len(broken_groups.NAMES) == 10 and {"21", "21-moved", "22", "23"} == set().union(
        *(broken.FAULTS[name].must for name in broken_groups.NAMES)
    )


def test_injected_faults_in_transactions_break_every_audit_rule_about_transactions() -> None:
    rules = {"11-aborted", "24", "25", "25-moved", "26", "26-first", "26-responses", "27", "28"}
    assert len(broken_transactions.NAMES) == 11 and rules == set().union(
        *(broken.FAULTS[name].must for name in broken_transactions.NAMES)
    )
    assert not any(broken.FAULTS[name].may for name in broken_transactions.NAMES)


def test_every_audit_rule_has_an_injected_fault_that_breaks_the_rule() -> None:
    brokers = set().union(*(fault.must for fault in broken.FAULTS.values()))
    assert brokers | {fault.must for fault in patched.FAULTS.values()} == {rule.number for rule in RULES}


def test_audit_report_about_a_broken_rule_contains_sample_rows_and_the_query(spark: Any, out: Path) -> None:
    tables = {table: rows(out.parent / "other", table) for table in TABLES}
    seq = patched.answered_while_muted(tables)
    audited = Tables(*(_frame(spark, table, table_rows) for table, table_rows in tables.items()))
    outcomes = audit(audited, [rule for rule in RULES if rule.number == "3"])
    assert [(outcome.broken, len(outcome.sample), outcome.worst) for outcome in outcomes] == [(1, 1, 1.0)] and status(
        outcomes
    ) == FAILED
    printed = text(outcomes)
    assert (
        "rule 3 (error): no request of a connection is handled while the connection is muted; the worst rows:"
        in printed
    )
    assert f", seq {seq}, " in printed and f"kafkaproto trace cut TRACE --seq {seq} --out rule-3.pcap" in printed
    rule_json = json.loads(json.dumps(as_json(outcomes)))["rules"][0]
    assert rule_json["sample"] == outcomes[0].sample
    assert rule_json["query"]["name"] == "kafkaproto.pipeline.trace.audit.throttling.muted"
    assert rule_json["query"]["source"].startswith("def muted(tables: Tables) -> DataFrame:")


# ---- arithmetic, verdicts, the command ---------------------------------------------------------------------------------------


def test_throttle_times_computed_by_the_audit_and_by_the_broker_are_equal(spark: Any) -> None:
    cases = [
        (rate / 7, bound / 3, window)
        for rate in (900.5, 10_500, 1e9)
        for bound in (1, 333.3, 30_000)
        for window in (1, 999, 10_500)
    ]
    cases += [(15.0, 10.0, 1001), (15.0, 10.0, 1003), (10.001, 10.0, 5000)]  # round half up
    requests, at = [], 0
    for rate, bound, window in cases:
        for quota in ("Produce", "Request"):
            wait = (
                throttle_ms(rate, bound, window) if quota == "Produce" else min(throttle_ms(rate, bound, window), 1000)
            )
            if 0 < wait < 2**31:
                at += 1
                columns = dict.fromkeys(c.name for c in TABLES["requests"]) | {"run": "r", "seq": at, "held": False}
                columns |= {"applied_throttle_ms": wait, "throttle_ms": wait, "throttle_quota": quota}
                columns |= {"quota_rate": rate, "quota_bound": bound, "quota_window_ms": window}
                requests.append(tuple(columns.values()))
    empty = {table: spark.createDataFrame([], ddl(table)) for table in TABLES}
    frame = spark.createDataFrame(requests, ddl("requests"))
    tables = Tables(**{**empty, "requests": frame})
    [outcome] = audit(tables, [rule for rule in RULES if rule.number == "4"])
    assert (outcome.checked, outcome.broken) == (len(requests), 0), outcome.sample
    assert len(requests) > 20


@pytest.mark.parametrize(("version", "verdict"), [(7, HOLDS), (8, BROKEN)])
def test_audit_accepts_a_delayed_throttled_fetch_response_only_before_kafka_2_0(
    spark: Any, out: Path, version: int, verdict: str
) -> None:
    """A broker that accepts Fetch version 8 is of release 2.0 or later: it responds at once, and without records if throttled."""
    tables = {table: rows(out.parent / "other", table) for table in TABLES}
    unknown = [column.name for column in TABLES["requests"] if column.broker_only]
    for row in tables["requests"]:
        row.update(dict.fromkeys(unknown))
    late = next(row for row in tables["requests"] if row["api"] == "Fetch" and (row["throttle_ms"] or 0) > 0)
    late |= {"api_version": version, "ready_ns": late["ready_ns"] + 5_000_000_000, "records_bytes": 10}
    audited = Tables(*(_frame(spark, table, table_rows) for table, table_rows in tables.items()))
    verdicts = {
        result.rule.number: result.verdict
        for result in audit(audited, [r for r in RULES if r.number in ("5", "13", "17")])
    }
    assert verdicts == {"5": verdict, "13": verdict, "17": HOLDS}


def test_audit_rule_without_any_row_to_check_gets_the_verdict_not_exercised(spark: Any, tmp_path: Path) -> None:
    outcomes = audit(Tables.of(spark, tmp_path), RULES[:3])
    assert {outcome.verdict for outcome in outcomes} == {NOT_EXERCISED} and status(outcomes) == UNREADABLE
    assert "0 hold" in text(outcomes).splitlines()[0]


def test_audit_exit_status_is_1_for_broken_warning_rules_and_2_for_error_rules() -> None:
    def broken(severity: str, count: int) -> Outcome:
        return Outcome(Rule("1", "", severity, lambda tables: tables.requests), 5, count, None, [])

    assert status([broken(ERROR, 0), broken(WARNING, 0)]) == 0
    assert status([broken(ERROR, 0), broken(WARNING, 1)]) == WARNED
    assert status([broken(ERROR, 1), broken(WARNING, 1)]) == FAILED
    assert broken(ERROR, 1).verdict == BROKEN and broken(ERROR, 0).verdict == HOLDS


def test_audit_of_a_folder_without_tables_exits_with_status_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        assert main([str(folder)]) == UNREADABLE
        printed = capsys.readouterr()
        assert printed.out == "" and f"{folder} holds no tables" in printed.err
    (tmp_path / "letters.txt").write_text("mine")
    assert main([str(tmp_path)]) == UNREADABLE and "holds files that are not tables" in capsys.readouterr().err


def test_audit_command_on_a_correct_trace_prints_that_no_rule_is_broken(out: Path, tmp_path: Path) -> None:
    result_path = tmp_path / "audit.json"
    command = [sys.executable, "-m", "kafkaproto.pipeline.trace.audit"]
    trace = out.parent / "trace"
    trace.joinpath("foreign.kptrace").write_bytes(b"a capture")
    command += [str(out), "--trace", str(trace), "--json", str(result_path)]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert (
        "foreign.kptrace is not a trace" in completed.stderr and f"({len(RULES)} of {len(RULES)}): " in completed.stderr
    )
    result = json.loads(result_path.read_text())
    verdicts = {rule.number: HOLDS for rule in RULES}
    assert {rule_json["rule"]: rule_json["verdict"] for rule_json in result["rules"]} == verdicts, completed.stdout
    assert completed.stdout.startswith(f"0 of {len(RULES)} rules broken, {len(RULES)} hold") and result["status"] == 0
    assert "bytes at byte" in completed.stdout.splitlines()[1] and result["remarks"]
