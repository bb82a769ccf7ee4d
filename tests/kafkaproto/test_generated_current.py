"""The committed generated code is what the generator writes from the committed definitions."""

from __future__ import annotations

from pathlib import Path

from kafkaproto.generator import PACKAGE, emit
from kafkaproto.generator.__main__ import generate, main, stale_files


def test_generated_code_in_the_repository_equals_the_output_of_the_generator() -> None:
    assert stale_files(generate()) == []


def test_code_generator_check_lists_changed_missing_and_obsolete_files(tmp_path: Path) -> None:
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


def test_code_generator_with_option_check_exits_with_0_if_files_are_current() -> None:
    assert main(["--check"]) == 0


def test_first_line_of_every_generated_file_names_the_generator() -> None:
    for name in generate():
        first = (PACKAGE / name).read_text().splitlines()[0]
        assert first.startswith("# Generated from schemas/") and emit.COMMAND in first and "Do not edit" in first
