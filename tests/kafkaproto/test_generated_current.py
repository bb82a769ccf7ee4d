"""The committed code is what the generator writes from the committed definitions."""

from __future__ import annotations

from pathlib import Path

from kafkaproto.generator import PACKAGE, emit
from kafkaproto.generator.__main__ import generate, main, stale_files


def test_the_committed_code_is_current() -> None:
    assert stale_files(generate()) == []


def test_check_finds_changed_missing_and_left_over_files(tmp_path: Path) -> None:
    (tmp_path / "messages").mkdir()
    (tmp_path / "data").mkdir()
    files = generate()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert stale_files(files, tmp_path) == []
    (tmp_path / "messages" / "fetch.py").write_text("# edited\n")
    (tmp_path / "messages" / "produce.py").unlink()
    (tmp_path / "messages" / "old_api.py").write_text("")
    assert stale_files(files, tmp_path) == ["messages/fetch.py", "messages/produce.py", "messages/old_api.py"]


def test_the_command_says_it_with_its_exit_status() -> None:
    assert main(["--check"]) == 0


def test_every_generated_file_says_so_in_its_first_line() -> None:
    for name in generate():
        first = (PACKAGE / name).read_text().splitlines()[0]
        assert first.startswith("# Generated from schemas/") and emit.COMMAND in first and "Do not edit" in first
