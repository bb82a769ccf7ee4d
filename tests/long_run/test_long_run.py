"""Bookkeeping of the long run: which parts count, and the committed results page."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.differential.__main__ import Summary
from tests.differential.comparing import Difference, Unstable
from tests.differential.conversations import GROUPS, Conversation
from tests.long_run import __main__ as program
from tests.long_run import code, parts
from tests.long_run.page import PAGE, page, write_page
from tests.long_run.parts import Finding, Part, Result, all_parts, done, missing, read, write
from tests.long_run.simulated import Simulated

HERE = {"broker": "b1", "kafkaproto": "k1", code.SIMULATED: "s1"}
ELSEWHERE = {"broker": "b2", "kafkaproto": "k1", code.SIMULATED: "s1"}


def result(name: str, *findings: Finding, at: dict[str, str] = HERE) -> Result:
    return Result(name, "abc1234", at, "2026-11-22", 7, list(findings or (Finding("it is so", True),)))


def test_long_test_run_skips_only_passed_parts_whose_code_has_not_changed() -> None:
    all_of_them = [Part(name, list) for name in ("kept", "changed", "broken", "new")]
    results = {
        "kept": result("kept"),
        "changed": result("changed", at=ELSEWHERE),
        "broken": result("broken", Finding("it is so", True), Finding("it is not", False)),
    }
    assert [part.name for part in missing(all_of_them, results, HERE)] == ["changed", "broken", "new"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a committed repository with files in the folders that count."""
    git(tmp_path, "init", "--quiet")
    for name in ("broker/a.py", "kafkaproto/a.py", "kafkaproto/conformance/test_a.py"):
        change(tmp_path, name)
    return tmp_path


def git(folder: Path, *command: str) -> None:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    subprocess.run(["git", *identity, *command], cwd=folder, check=True, capture_output=True)


def change(folder: Path, name: str) -> None:
    """Add a line to a file and commit it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + "x = 0\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", name)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("broker/a.py", {"broker"}),
        ("broker/b.py", {"broker"}),
        ("broker/node.py", {"broker", code.SIMULATED}),
        ("broker/table.tsv", {"broker", code.SIMULATED}),
        ("kafkaproto/a.py", {"kafkaproto"}),
        ("kafkaproto/frame.py", {"kafkaproto", code.SIMULATED}),
        ("kafkaproto/conformance/a.py", {"kafkaproto"}),
        ("kafkaproto/conformance/test_a.py", {code.SUITE}),
        ("kafkaproto/conformance/profiles/a.properties", {code.SUITE}),
    ],
)
def test_editing_a_file_changes_only_the_code_hashes_computed_from_that_file(
    repository: Path, name: str, keys: set[str]
) -> None:
    before = code.code_hashes(repository)
    change(repository, name)
    after = code.code_hashes(repository)
    assert before is not None and after is not None
    assert {key for key in before if before[key] != after[key]} == keys


def test_edit_of_code_that_simulations_do_not_load_keeps_simulation_results_valid() -> None:
    simulated = replace(result("simulated"), code={code.SIMULATED: "s1"})
    assert parts.counts(simulated, ELSEWHERE)
    assert not parts.counts(simulated, {**ELSEWHERE, code.SIMULATED: "s2"})


def test_simulations_load_only_files_that_are_listed_in_simulated_files_txt() -> None:
    program_text = "from tests.long_run.simulated import seeds\nprint('\\n'.join(sorted(seeds(500, 3).loaded)))"
    ran = subprocess.run(
        [sys.executable, "-c", program_text], cwd=code.ROOT, capture_output=True, text=True, check=True
    )
    loaded = frozenset(ran.stdout.split())
    assert "broker/node.py" in loaded and loaded <= code.simulated_files()


def test_simulation_run_fails_if_it_loads_a_file_that_simulated_files_txt_omits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "many_seeds", lambda first, count: Simulated(count, loaded=frozenset({"broker/odd.py"})))
    findings = all_parts()[-1].run()
    assert [finding.line for finding in findings if not finding.holds] == [
        "broker/odd.py was loaded, but is not listed in simulated_files.txt"
    ]


def test_long_test_run_results_stay_valid_after_comments_and_private_names_change(repository: Path) -> None:
    path, template = (
        repository / "broker/a.py",
        '_{0} = 1\n\n\nclass A:\n    """{0}"""\n\n    def f(self):\n        """{0}"""\n        return "{1}" * _{0}  # {0}\n\n\ndef test_{0}(): ...\n',
    )
    hashes = []
    for texts in (("first", "value"), ("second", "value"), ("second", "other value")):
        path.write_text(template.format(*texts))
        git(repository, "commit", "--quiet", "-a", "-m", "a change")
        hashes.append(code.code_hashes(repository))
    assert hashes[0] == hashes[1] != hashes[2]


def test_code_hashes_of_a_long_test_run_are_none_if_there_are_uncommitted_changes(repository: Path) -> None:
    for name in ("broker/a.py", "kafkaproto/conformance/test_a.py"):
        (repository / name).write_text("not committed\n")
        assert code.code_hashes(repository) is None
        git(repository, "checkout", "--quiet", ".")
        assert code.code_hashes(repository) is not None


def test_long_test_run_results_stay_valid_after_an_edit_of_a_test_file(repository: Path) -> None:
    before = code.code_hashes(repository)
    change(repository, "tests/test_a.py")
    assert code.code_hashes(repository) == before


def test_long_test_run_results_written_to_a_file_are_read_back_equal(tmp_path: Path) -> None:
    lost_result = result("one", Finding("it is not", False))
    write(lost_result, tmp_path / "results")
    assert read(tmp_path / "results") == {"one": lost_result}


def test_each_result_of_the_long_test_run_contains_the_tested_commit() -> None:
    finished = done(Part("one", lambda: [Finding("it is so", True)]), "abc1234", HERE)
    assert (finished.name, finished.commit, finished.code) == ("one", "abc1234", {"broker": "b1", "kafkaproto": "k1"})
    assert finished.findings == [Finding("it is so", True)] and finished.holds


NAMES = ["kafka-configs", "distribution", "simulation-00000", "simulation-00500", "simulation-01000"]


def test_long_test_run_report_lists_failed_parts_and_parts_that_were_not_run() -> None:
    bad = replace(result("distribution", Finding("it is not", False)), commit="def5678")
    text = page(NAMES[:3], {"kafka-configs": result("kafka-configs"), "distribution": bad}, NAMES[1:3], "fed9876")
    assert "2 of 3 parts were run. **These do not hold:** distribution.\n" in text
    assert "When this page was written, at fed9876, 2 of 3 parts had no result for the code of this commit" in text
    assert "    - kafka-configs, abc1234, 2026-11-22, 7 s:\n        - it is so.\n" in text
    assert "    - distribution, def5678, 2026-11-22, 7 s, older code:\n" in text
    assert "        - **does not hold:** it is not\n" in text and "    - simulation-00000: not run.\n" in text


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells after the second of each row of the table, by the first cell."""
    lines = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    return {first.strip(): [cell.strip() for cell in cells] for first, _, *cells in lines}


def test_long_test_run_report_has_total_runs_and_first_and_last_date_of_simulations() -> None:
    line = "seeds 0 to 499: 1,500 of 1,500 held; 150,000 client operations, 303 hours of virtual time"
    first, second = (result(name, Finding(line, True)) for name in NAMES[2:4])
    second = replace(second, commit="def5678", date="2026-11-24")
    text = page(NAMES, {first.name: first, second.name: second}, [*NAMES[:2], *NAMES[3:]], "fed9876")
    assert rows(text)["kafka-configs"] == ["", "not run", "", ""]
    assert rows(text)["Simulation"] == [
        "3,000 runs, 300,000 client operations",
        "holds (1 of 3), held with older code (1 of 3), not run (1 of 3)",
        "2026-11-22 to 2026-11-24",
        "abc1234, def5678",
    ]
    assert "2 of 5 parts were run, and each of them held when it was last run.\n" in text
    whole = page(NAMES, {name: replace(first, name=name) for name in NAMES}, [], "fed9876")
    assert rows(whole)["Simulation"][1:] == ["holds", "2026-11-22", "abc1234"]
    lost = {name: result(name, Finding("it is not", False)) for name in NAMES}
    assert rows(page(NAMES, lost, NAMES, "fed9876"))["Simulation"][1] == "**does not hold**"


def test_building_the_long_test_run_report_with_an_unknown_test_raises_value_error() -> None:
    with pytest.raises(ValueError, match="part new has 0 kinds"):
        page(["new"], {}, ["new"], "fed9876")


def test_long_test_run_report_says_how_much_was_run_in_each_part_that_has_a_result() -> None:
    results = read()
    for part in all_parts():
        if part.name in results:
            assert rows(page([part.name], results, [], "fed9876")).popitem()[1][0] != "", part.name


def test_long_test_run_report_shows_how_many_parts_lack_a_result_for_current_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.long_run.page.commit", lambda: "fed9876")
    path = tmp_path / "page.md"
    first, second = NAMES[:2]
    results = {first: result(first), second: result(second, at=ELSEWHERE)}
    write_page([first, second], results, HERE, path)
    assert "1 of 2 parts had no result for the code of this commit" in path.read_text()
    write_page([first, second], {**results, second: result(second)}, HERE, path)
    assert "All 2 parts have a result for the code of fed9876, at which" in path.read_text()


@pytest.mark.parametrize("changed", [False, True])
def test_long_test_run_discards_a_result_if_the_code_changed_during_the_run(
    changed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = [HERE]

    def run() -> list[Finding]:
        if changed:
            at[0] = ELSEWHERE
        return [Finding("it is so", True)]

    monkeypatch.setattr(program, "all_parts", lambda: [Part("one", run)])
    monkeypatch.setattr(program, "code_hashes", lambda: at[0])
    monkeypatch.setattr(program, "commit", lambda: "abc1234")
    monkeypatch.setattr(program, "read", dict)
    monkeypatch.setattr(program, "write", lambda part_results: write(part_results, tmp_path))
    monkeypatch.setattr(program, "write_page", lambda names, results, at: None)
    assert program.main([]) == (2 if changed else 0)
    assert list(read(tmp_path)) == ([] if changed else ["one"])
    assert ("its result is not kept" in capsys.readouterr().err) == changed


def test_long_test_run_fails_if_responses_to_a_seed_vary_unless_a_reason_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = "beat", {"member": "A"}
    unstable = Unstable(Conversation(GROUPS, "4.2", (step,)), Difference(0, step, 0, 1))
    monkeypatch.setattr(parts, "both", lambda about, release: nullcontext())
    monkeypatch.setattr(parts, "run_conversations", lambda *a, **fields: Summary(200, {}, {7: unstable}))
    part = next(part for part in all_parts() if part.name == "conversations-groups-4.2")
    assert [finding.holds for finding in part.run()] == [True, False]
    monkeypatch.setattr(parts, "UNSTABLE", {(GROUPS, "4.2", 7): "the order of members is random"})
    assert part.run()[1] == Finding("seed 7 is unstable: the order of members is random", True)


def test_long_test_run_contains_10000_simulations_and_2000_request_sequences() -> None:
    names = [part.name for part in all_parts()]
    assert len(names) == len(set(names))
    assert sum(name.startswith("simulation-") for name in names) * parts.SEEDS_OF_A_PART == parts.SEEDS == 10_000
    assert sum(name.startswith("conversations-0") for name in names) * parts.CONVERSATIONS_OF_A_PART == 2_000


def test_committed_long_test_run_results_have_no_failure_and_are_all_in_the_report() -> None:
    results = read()
    assert [name for name, part_result in results.items() if not part_result.holds] == []
    names, text = [part.name for part in all_parts()], PAGE.read_text()
    written = re.search(
        r"When this page was written, at (\w+), (\d+) of|the code of (\w+), at which this page was written", text
    )
    assert written is not None
    outdated = [*re.findall(r"^    - ([^,\n]+), .*, older code:$", text, re.MULTILINE), *(set(names) - set(results))]
    assert int(written[2] or 0) == len(outdated)
    assert text == page(names, results, outdated, written[1] or written[3])
