"""Fetching Kafka's jars: once, whole or not at all, and clear words when it cannot be done."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.rivals import jars


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKAPROTO_CACHE", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda program: f"/bin/{program}")
    return tmp_path


def pretend_fetch(monkeypatch: pytest.MonkeyPatch, names: Sequence[str]) -> list[Path]:
    """Replace the fetching by making empty files; returns the folders that were asked for."""
    targets: list[Path] = []

    def fetch(wanted: object, target: Path, scratch: Path) -> None:
        targets.append(target)
        for name in names:
            (target / name).touch()

    monkeypatch.setattr(jars, "fetch", fetch)
    return targets


def test_jars_are_fetched_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = pretend_fetch(monkeypatch, ["kafka-clients-3.9.1.jar", "other.jar"])
    first, second = jars.kafka_jars(), jars.kafka_jars()
    assert first == second == cache / "jars" / "kafka-3.9.1" and len(targets) == 1
    assert sorted(path.name for path in first.iterdir()) == ["kafka-clients-3.9.1.jar", "other.jar"]
    assert list((cache / "jars").iterdir()) == [first], "nothing half done is left"


def test_a_fetch_without_the_jar_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_fetch(monkeypatch, ["other.jar"])
    with pytest.raises(jars.JarsMissing, match=r"kafka-clients 3\.9\.1"):
        jars.kafka_jars()
    assert list((cache / "jars").iterdir()) == []


def test_another_run_that_was_faster_wins(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache / "jars" / "kafka-3.9.1"

    def fetch(wanted: object, target: Path, scratch: Path) -> None:
        (target / "kafka-clients-3.9.1.jar").touch()
        folder.mkdir()
        (folder / "theirs.jar").touch()

    monkeypatch.setattr(jars, "fetch", fetch)
    assert jars.kafka_jars() == folder and [path.name for path in folder.iterdir()] == ["theirs.jar"]


def test_without_java_it_says_what_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(jars.JarsMissing, match="`java` is not on the PATH; needed: a JDK 17"):
        jars.kafka_jars()


def test_without_maven_and_pyspark_it_says_what_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: "/bin/java" if program == "java" else None)
    monkeypatch.setattr(jars, "find_ivy", lambda: None)
    with pytest.raises(jars.JarsMissing, match="pip install pyspark"):
        jars.kafka_jars()


def test_a_program_that_fails_is_quoted() -> None:
    with pytest.raises(jars.JarsMissing, match="no such thing"):
        jars.run(["sh", "-c", "echo no such thing >&2; exit 3"])
