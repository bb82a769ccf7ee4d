"""`make ab` without valgrind: options, the two sides, limits, verdicts, and the measured workload."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import race
from benchmarks import raw_client as client
from benchmarks.ab import __main__ as command
from benchmarks.ab import instructions, sides, sockets, workload
from benchmarks.ab.verdicts import Result, at_most, paired, table

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
HERE = sides.Side(sides.BASE, ROOT, Path(sys.executable))


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.ab", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


# ---- limits and verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("now", "missed"), [(90.0, False), (103.0, False), (103.1, True)])
def test_ab_benchmark_accepts_an_instruction_count_growth_of_at_most_3_percent(now: float, missed: bool) -> None:
    result = at_most("metadata", 100.0, now, 1.03, "{:.0f}")
    assert result.ratio == pytest.approx(now / 100)
    assert result.missed is missed


def test_ab_benchmark_speed_ratio_is_the_median_of_the_ratios_of_all_rounds() -> None:
    base, now = [100.0, 10.0, 1000.0], [90.0, 11.0, 960.0]
    result = paired("produce", base, now)
    assert result.ratio == pytest.approx(0.96)
    assert not result.missed
    assert paired("produce", base, [90.0, 11.0, 940.0]).missed


@pytest.mark.parametrize(("now", "missed"), [(94.9, True), (95.0, False), (120.0, False)])
def test_ab_benchmark_accepts_a_speed_drop_of_at_most_5_percent(now: float, missed: bool) -> None:
    assert paired("produce", [100.0] * 3, [now] * 3).missed is missed


def test_ab_benchmark_reports_a_failed_measurement_as_a_missed_limit() -> None:
    unmeasured = at_most("metadata", 100.0, None, 1.03, "{:.0f}", "now: ImportError: no such module")
    assert unmeasured.missed
    assert "MISSED: now: ImportError: no such module" in table([unmeasured])
    assert paired("produce", [1.0, 1.0], [1.0]).missed
    assert paired("produce", [], []).missed


def test_ab_benchmark_table_shows_old_and_new_values_with_their_ratio_and_verdict() -> None:
    lines = table([at_most("metadata", 1000.0, 1031.0, 1.03, "{:,.0f}"), paired("fetch", [10.0], [10.0])]).splitlines()
    assert lines[0].split() == ["row", "base", "now", "now/base", "limit", "verdict"]
    assert lines[1].split() == ["metadata", "1,000", "1,031", "1.0310", "≤", "1.03", "MISSED"]
    assert lines[2].split() == ["fetch", "10.0", "10.0", "1.0000", "≥", "0.95", "ok"]


# ---- the whole command on made-up numbers --------------------------------------------------------------------------------------


class Numbers:
    """Fixed results in place of measurements."""

    def __init__(self) -> None:
        self.requests = self.start = self.idle = self.speed = 1.0

    def of_requests(self, side: sides.Side, rows: list[str], requests: int) -> dict[str, instructions.Count]:
        return {row: instructions.Count(100.0 * self._of(side, self.requests)) for row in rows}

    def of_start(self, side: sides.Side) -> dict[str, instructions.Count]:
        counted = instructions.Count(1e9 * self._of(side, self.start))
        return {instructions.START: counted, instructions.POSTPONED: counted}

    def idle_mb(self, both: tuple[sides.Side, ...]) -> dict[str, float]:
        return {side.name: 30.0 * self._of(side, self.idle) for side in both}

    def raced(self, both: tuple[sides.Side, ...], rows: list[sockets.Row], rounds: int) -> dict[str, Any]:
        return {row.name: {side.name: [50.0 * self._of(side, self.speed)] * rounds for side in both} for row in rows}

    @staticmethod
    def _of(side: sides.Side, ratio: float) -> float:
        return ratio if side.name == sides.NOW else 1.0


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> Numbers:
    fixed = Numbers()
    monkeypatch.setattr(instructions, "valgrind", lambda: "/usr/bin/valgrind")
    monkeypatch.setattr(instructions, "of_requests", fixed.of_requests)
    monkeypatch.setattr(instructions, "of_start", fixed.of_start)
    monkeypatch.setattr(sockets, "idle_mb", fixed.idle_mb)
    monkeypatch.setattr(sockets, "raced", fixed.raced)
    monkeypatch.setattr(command, "resolve", lambda base: "0" * 40)
    monkeypatch.setattr(command, "base_side", lambda commit: HERE)
    monkeypatch.setattr(command, "now_side", lambda: HERE._replace(name=sides.NOW))
    monkeypatch.setattr(command.platform, "system", lambda: "Linux")
    return fixed


def test_benchmark_of_old_and_new_code_prints_each_measurement_exactly_once(
    numbers: Numbers, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([]) == 0
    output = capsys.readouterr().out
    names = [name for part in command.names().values() for name in part]
    assert [line[: len(name)] for line, name in zip(output.splitlines()[1:], names, strict=False)] == names
    assert f"{len(names)} rows, 0 missed" in output
    assert len(names) == len(set(names)) == len(workload.ROWS) + 3 + len(sockets.ROWS)


@pytest.mark.parametrize(
    ("measurement", "ratio", "part"),
    [
        ("requests", 1.04, "instructions"),
        ("start", 1.04, "start"),
        ("idle", 1.04, "start"),
        ("speed", 0.94, "race"),
    ],
)
def test_benchmark_of_old_and_new_code_exits_with_status_1_if_new_code_is_too_slow(
    numbers: Numbers, capsys: pytest.CaptureFixture[str], measurement: str, ratio: float, part: str
) -> None:
    setattr(numbers, measurement, ratio)
    assert command.main([]) == 1
    missed = [line for line in capsys.readouterr().out.splitlines() if line.endswith(" MISSED")]
    assert missed and all(any(line.startswith(name) for name in command.names()[part]) for line in missed)
    others = [word for name in command.PARTS if name != part for word in ("--only", name)]
    assert command.main(others) == 0


def test_ab_benchmark_exits_with_status_0_if_all_measurements_improve(numbers: Numbers) -> None:
    numbers.requests = numbers.start = numbers.idle = 0.5
    numbers.speed = 2.0
    assert command.main([]) == 0


def test_measurements_of_the_ab_benchmark_can_be_selected_by_name(
    numbers: Numbers, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--rows", "^heartbeat|idle"]) == 0
    assert "2 rows, 0 missed" in capsys.readouterr().out
    assert command.main(["--rows", "three replicas", "--only", "race"]) == 0
    assert "1 rows, 0 missed" in capsys.readouterr().out


def test_ab_benchmark_with_fewer_than_30_rounds_prints_a_warning(
    numbers: Numbers, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--only", "race", "--rounds", "2"]) == 0
    assert "at least 30" in capsys.readouterr().out
    assert command.main(["--only", "race"]) == 0
    assert "at least 30" not in capsys.readouterr().out


def test_ab_benchmark_requires_valgrind_only_for_instruction_counts(
    numbers: Numbers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(instructions, "valgrind", lambda: None)
    assert command.main(["--only", "race"]) == 0
    assert command.main(["--rows", "idle memory"]) == 0
    capsys.readouterr()
    assert command.main([]) == 2
    assert command.main(["--rows", "start to"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [f"make ab: {instructions.MISSING}"] * 2
    assert "apt install valgrind" in instructions.MISSING


# ---- misuse --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["no-such-branch", "HEAD~999999", "--all", "HEAD:Makefile", ""])
def test_ab_benchmark_prints_a_one_line_error_for_an_unknown_git_commit(base: str) -> None:
    completed = run("--only", "race", "--", base)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr == (
        f"make ab: BASE={base} is not a commit of this repository; pass a branch, a tag or an id, for example BASE=HEAD~1\n"
    )


def test_ab_benchmark_raises_an_error_for_a_folder_that_is_not_a_git_checkout(tmp_path: Path) -> None:
    with pytest.raises(sides.SideError, match="is not a git checkout"):
        sides.resolve("HEAD", tmp_path)


def test_make_target_ab_reports_missing_valgrind_before_checking_the_given_commit(tmp_path: Path) -> None:
    completed = run("no-such-branch", PATH=str(tmp_path))
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr == f"make ab: {instructions.MISSING}\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--rows", "no such row"], "no benchmark row matches --rows no such row"),
        (["--rows", "("], "is not a regular expression"),
        (["--only", "codec"], "invalid choice: 'codec'"),
        (["--rounds", "0"], "must be a whole number of at least 1 (got '0')"),
        (["--requests", "many"], "must be a whole number of at least 1 (got 'many')"),
        (["HEAD", "HEAD~1"], "unrecognized arguments: HEAD~1"),
    ],
)
def test_ab_benchmark_rejects_invalid_options(
    arguments: list[str], why: str, numbers: Numbers, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = command.main(arguments)
    except SystemExit as stopped:
        status = stopped.code  # type: ignore[assignment]
    assert status == 2
    assert why in capsys.readouterr().err


# ---- sides ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with two commits, whose project needs no packages; the second commit is checked out."""
    root = tmp_path / "repository"
    (root / "broker").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[project]\nname = "p"\ndependencies = []\n')
    git(root, "init", "--quiet", "--initial-branch=main")
    for text in ("one", "two"):
        (root / "broker" / "__init__.py").write_text(f"TEXT = '{text}'\n")
        git(root, "add", ".")
        git(root, "-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "--quiet", "-m", text)
    (root / "broker" / "__init__.py").write_text("TEXT = 'uncommitted'\n")
    monkeypatch.setattr(sides, "ROOT", root)
    monkeypatch.setattr(sides, "CACHE", root / ".cache" / "ab")
    return root


def git(root: Path, *arguments: str) -> str:
    completed = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return completed.stdout


def text_of(side: sides.Side) -> str:
    completed = subprocess.run(
        [side.python, "-P", "-c", "import broker; print(broker.TEXT)"],
        env=side.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return completed.stdout.strip()


def test_ab_benchmark_compares_a_commit_with_the_current_working_tree(repository: Path) -> None:
    before = git(repository, "status", "--porcelain", "--branch", "--untracked-files=no")
    commit = sides.resolve("HEAD~1", repository)
    base, now = sides.base_side(commit), sides.now_side()
    assert (text_of(base), text_of(now)) == ("one", "uncommitted")
    assert base.folder == repository / ".cache" / "ab" / commit
    assert base.python == now.python != Path(sys.executable)
    assert git(repository, "status", "--porcelain", "--branch", "--untracked-files=no") == before
    assert base.environment() == {**now.environment(), "PYTHONPATH": str(base.folder)}
    assert len(str(base.folder)) == len(str(now.folder)), "paths of another length change the memory layout"
    assert not list((repository / "broker").rglob("*.pyc")), "nothing is written into the working tree"

    mark = base.folder / "broker" / "mark"
    mark.touch()
    assert sides.base_side(commit) == base and mark.exists(), "a worktree is reused"
    (sides.CACHE / f"{commit}.ready").unlink()
    assert sides.base_side(commit) == base and not mark.exists(), "an incomplete worktree is created again"

    assert sides.clean() == 1
    assert not sides.CACHE.exists()
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert sides.clean() == 0


def test_ab_benchmark_creates_a_new_virtual_environment_for_changed_dependencies(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = sides.environment_of([])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(sides.SideError, match=r"the virtual environment .* cannot be created: .*no-such-package"):
        sides.environment_of(["no-such-package==1"])
    assert [path.name for path in sides.CACHE.glob("*.ready")] == [f"{plain.name}.ready"], (
        "a failed worktree is not reused"
    )


# ---- the workload --------------------------------------------------------------------------------------------------------------


def worked(*rows: str, requests: int = 3, folder: Path = ROOT) -> list[dict[str, Any]]:
    completed = subprocess.run(
        [sys.executable, "-P", instructions.HERE / "workload.py", "--requests", str(requests), *rows],
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return [json.loads(line) for line in completed.stdout.splitlines()]


def test_ab_benchmark_workloads_get_all_responses_with_the_expected_record_bytes() -> None:
    results = {result["row"]: result for result in worked(*workload.ROWS, requests=7)}
    assert list(results) == list(workload.ROWS)
    for name, result in results.items():
        assert "error" not in result, result
        assert (result["requests"], result["responses"]) == (7, 7), name
        assert result["throttled"] == (result["checked"] if "throttled" in name else 0), name
    records = {name: result["record_bytes"] for name, result in results.items()}
    assert records["fetch 1 MB of 16 KB batches"] > 900_000
    assert 100 < records["fetch 100 B"] == records["fetch 100 B, recorded"] < 300
    assert records["incremental fetch of 100 partitions"] == records["fetch 2 KB, throttled"] == 0


def test_ab_benchmark_workload_rejects_an_unexpected_response() -> None:
    row = workload.Exchange
    for exchange, expected in [
        (row(0, 0, [3]), workload.unthrottled),
        (row(1, 0, []), workload.unthrottled),
        (row(0, 0, []), workload.throttled),
        (row(1, 9, []), workload.throttled),
        (row(0, 99, []), workload.with_records(100, 300)),
    ]:
        with pytest.raises(workload.WorkloadError, match="unexpected response"):
            workload.check_response(exchange, expected)
    workload.check_response(row(5, 0, []), workload.throttled)


def test_error_for_a_broker_class_not_found_by_the_benchmark_lists_searched_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(workload.HOMES, "VirtualCluster", ("nowhere.testing.memory", "kafkaproto.broker.runtime.clock"))
    with pytest.raises(
        workload.WorkloadError,
        match=r"VirtualCluster, which is defined in none of the modules nowhere\.testing\.memory, kafkaproto\.broker\.runtime\.clock",
    ):
        workload.find("VirtualCluster")


def test_ab_benchmark_raises_the_import_error_of_a_broker_module_with_a_bad_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_there.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(workload.HOMES, "VirtualCluster", ("half_there", "kafkaproto.broker.testing.memory"))
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        workload.find("VirtualCluster")


def test_ab_benchmark_reads_instruction_counts_from_callgrind_files(tmp_path: Path) -> None:
    """The files are shortened output of callgrind 3.19. The file without a part is written when the process ends."""
    for name, total in (("7", 9), ("7.1", 700), ("7.2", 5000), ("12.2", 60)):
        (tmp_path / f"callgrind.{name}").write_text(
            "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\npart: 1\n\npositions: line\nevents: Ir\nsummary: 7017\n\n"
            f"ob=(2) /lib/libc.so.6\nfn=(8) getpriority\n0 1\n\ntotals: {total}\n"
        )
    assert instructions.read_parts(tmp_path) == {(7, 1): 700, (7, 2): 5000, (12, 2): 60}


def test_instruction_counts_of_a_broker_imported_from_the_wrong_folder_are_rejected(tmp_path: Path) -> None:
    line = json.dumps({"row": "metadata", "pid": 7, "source": f"{ROOT}/broker/testing/memory.py"})
    run = instructions.Run(line, {(7, 1): 700, (7, 2): 5000}, "")
    assert instructions.request_counts(HERE, ["metadata"], 50, run) == {"metadata": instructions.Count(100.0)}
    elsewhere = instructions.request_counts(HERE._replace(folder=tmp_path), ["metadata"], 50, run)["metadata"]
    assert elsewhere.instructions is None and "is not in" in elsewhere.why


def test_benchmark_result_of_a_failed_or_crashed_workload_contains_the_reason() -> None:
    line = json.dumps({"row": "metadata", "pid": 7, "error": "WorkloadError: no response"})
    run = instructions.Run(line, {}, "exit status 1")
    assert instructions.request_counts(HERE, ["metadata", "heartbeat"], 50, run) == {
        "metadata": instructions.Count(None, "WorkloadError: no response"),
        "heartbeat": instructions.Count(None, "exit status 1"),
    }


def test_ab_benchmark_can_import_the_broker_from_the_package_kafkaproto_broker(tmp_path: Path) -> None:
    """The broker is found as `kafkaproto.broker`, its place in a wheel."""
    (tmp_path / "kafkaproto" / "broker" / "testing").mkdir(parents=True)
    for folder in ("kafkaproto", "kafkaproto/broker", "kafkaproto/broker/testing"):
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "kafkaproto" / "broker" / "testing" / "memory.py").write_text("VirtualCluster = 'the new home'\n")
    completed = subprocess.run(
        [sys.executable, "-P", "-c", "import workload; print(workload.find('VirtualCluster'))"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{instructions.HERE}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout == "the new home\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the comparison reads /proc and pins cores")
def test_ab_benchmark_returns_speed_and_memory_of_the_old_and_the_current_broker() -> None:
    both = (HERE, HERE._replace(name=sides.NOW))
    rows = [
        sockets.Row("produce", race.produced(1, 50)),
        sockets.Row("round trips", lambda address: client.round_trips(address, 0.05)),
    ]
    speeds_by_row = sockets.raced(both, rows, rounds=2)
    assert list(speeds_by_row) == [row.name for row in rows]
    for speeds in speeds_by_row.values():
        assert len(speeds[sides.BASE]) == len(speeds[sides.NOW]) in (2, 4)
        assert min(*speeds[sides.BASE], *speeds[sides.NOW]) > 0
    idle = sockets.idle_mb(both, starts=1)
    assert 10 < idle[sides.BASE] < 100 and 10 < idle[sides.NOW] < 100


def test_ab_benchmark_repeats_a_speed_measurement_if_the_new_code_is_too_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Made:
        def __init__(self, name: str) -> None:
            self.name, self.seen, self.address = name, {}, name

        def note_memory(self) -> None: ...

        def start(self) -> None: ...

        def stop(self) -> None: ...

        def pin(self, cores: set[int]) -> None: ...

    monkeypatch.setattr(sockets, "broker", lambda side, brokers=1: Made(side.name))
    rows = [
        sockets.Row("slow", lambda address: 50.0 if address == sides.NOW else 100.0),
        sockets.Row("even", lambda address: 100.0),
    ]
    speeds_by_row = sockets.raced((HERE, HERE._replace(name=sides.NOW)), rows, rounds=3)
    assert {name: len(speeds[sides.NOW]) for name, speeds in speeds_by_row.items()} == {"slow": 6, "even": 3}
    assert paired("slow", speeds_by_row["slow"][sides.BASE], speeds_by_row["slow"][sides.NOW]) == Result(
        "slow", "100.0", "50.0", 0.5, 0.95, True
    )
