"""Which parts of the long run count, and that the committed page is what they came to."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.long_run import __main__ as program
from tests.long_run import parts
from tests.long_run.page import PAGE, page
from tests.long_run.parts import Finding, Part, Result, all_parts, done, missing, read, write

HERE, ELSEWHERE = {"broker": "b1", "kafkaproto": "k1"}, {"broker": "b2", "kafkaproto": "k1"}


def result(name: str, *findings: Finding, at: dict[str, str] = HERE) -> Result:
    return Result(name, "abc1234", at, "2026-11-22", 7, list(findings or (Finding("it is so", True),)))


def test_a_part_counts_while_what_it_proves_is_unchanged_and_it_holds() -> None:
    all_of_them = [Part(name, list) for name in ("kept", "changed", "broken", "new")]
    results = {
        "kept": result("kept"),
        "changed": result("changed", at=ELSEWHERE),
        "broken": result("broken", Finding("it is so", True), Finding("it is not", False)),
    }
    assert [part.name for part in missing(all_of_them, results, HERE)] == ["changed", "broken", "new"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A committed repository with files in the folders that count."""
    git(tmp_path, "init", "--quiet")
    for name in ("broker/a.py", "kafkaproto/a.py", "kafkaproto/conformance/test_a.py"):
        change(tmp_path, name)
    return tmp_path


def git(folder: Path, *command: str) -> None:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    subprocess.run(["git", *identity, *command], cwd=folder, check=True, capture_output=True)


def change(folder: Path, name: str) -> None:
    """Add a line to a file, and commit it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + "x = 0\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", name)


@pytest.mark.parametrize("name", ["broker/a.py", "broker/b.py", "kafkaproto/a.py", "kafkaproto/conformance/test_a.py"])
def test_a_change_of_the_broker_or_the_codec_undoes_results(repository: Path, name: str) -> None:
    before = parts.trees(repository)
    change(repository, name)
    folder = name.split("/")[0]
    after = parts.trees(repository)
    assert before is not None and after is not None
    assert {one for one in before if before[one] != after[one]} == {folder}


def test_changes_that_are_not_committed_have_no_trees(repository: Path) -> None:
    for name in ("broker/a.py", "kafkaproto/conformance/test_a.py"):
        (repository / name).write_text("not committed\n")
        assert parts.trees(repository) is None
        git(repository, "checkout", "--quiet", ".")
        assert parts.trees(repository) is not None


def test_a_change_elsewhere_undoes_nothing(repository: Path) -> None:
    before = parts.trees(repository)
    change(repository, "tests/test_a.py")
    assert parts.trees(repository) == before


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    told = result("one", Finding("it is not", False))
    write(told, tmp_path / "results")
    assert read(tmp_path / "results") == {"one": told}


def test_a_part_that_is_done_has_its_commit() -> None:
    told = done(Part("one", lambda: [Finding("it is so", True)]), "abc1234", HERE)
    assert (told.name, told.commit, told.trees) == ("one", "abc1234", HERE)
    assert told.findings == [Finding("it is so", True)] and told.holds


def test_the_page_says_what_is_missing_and_what_does_not_hold() -> None:
    bad = replace(result("bad", Finding("it is not", False)), commit="def5678")
    text = page(["good", "bad", "new"], {"good": result("good"), "bad": bad})
    assert "1 of 3 parts are done and hold, at abc1234, def5678." in text
    assert "- good, abc1234, 2026-11-22, 7 s:\n  - it is so.\n" in text
    assert "  - **does not hold:** it is not\n" in text and "- new: not done.\n" in text


def test_the_page_says_when_parts_were_done_with_different_code() -> None:
    same, other = result("one"), result("two", at=ELSEWHERE)
    assert "not all done with the same code" not in page(["one", "two"], {"one": same, "two": result("two")})
    assert "not all done with the same code" in page(["one", "two"], {"one": same, "two": other})


@pytest.mark.parametrize("changed", [False, True])
def test_a_part_does_not_count_if_the_code_changed_meanwhile(
    changed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = [HERE]

    def run() -> list[Finding]:
        if changed:
            at[0] = ELSEWHERE
        return [Finding("it is so", True)]

    monkeypatch.setattr(program, "all_parts", lambda: [Part("one", run)])
    monkeypatch.setattr(program, "trees", lambda: at[0])
    monkeypatch.setattr(program, "commit", lambda: "abc1234")
    monkeypatch.setattr(program, "read", dict)
    monkeypatch.setattr(program, "write", lambda one: write(one, tmp_path))
    monkeypatch.setattr(program, "write_page", lambda names, results: None)
    assert program.main([]) == (2 if changed else 0)
    assert list(read(tmp_path)) == ([] if changed else ["one"])
    assert ("it does not count" in capsys.readouterr().err) == changed


def test_the_parts_are_all_seeds_and_all_conversations_once() -> None:
    names = [part.name for part in all_parts()]
    assert len(names) == len(set(names))
    assert sum(name.startswith("simulation-") for name in names) * parts.SEEDS_OF_A_PART == parts.SEEDS == 10_000
    assert sum(name.startswith("conversations-0") for name in names) * parts.CONVERSATIONS_OF_A_PART == 2_000


def test_the_committed_page_is_that_of_the_committed_results_and_holds() -> None:
    results = read()
    assert [name for name, one in results.items() if not one.holds] == []
    assert PAGE.read_text() == page([part.name for part in all_parts()], results)
