"""Downloading Kafka's jars: once, completely or not at all, with clear errors."""

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
    """Replace downloads by creating empty files, and return the list of requested folders."""
    targets: list[Path] = []

    def fetch(jar: object, target: Path, scratch: Path) -> None:
        targets.append(target)
        for name in names:
            (target / name).touch()

    monkeypatch.setattr(jars, "fetch", fetch)
    return targets


def test_kafka_jars_are_downloaded_only_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = pretend_fetch(monkeypatch, ["kafka-clients-3.9.1.jar", "other.jar"])
    first, second = jars.kafka_jars(), jars.kafka_jars()
    assert first == second == cache / "jars" / "kafka-3.9.1" and len(targets) == 1
    assert sorted(path.name for path in first.iterdir()) == ["kafka-clients-3.9.1.jar", "other.jar"]
    assert list((cache / "jars").iterdir()) == [first], "no incomplete download is left"


def test_incomplete_jar_download_leaves_no_files(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_fetch(monkeypatch, ["other.jar"])
    with pytest.raises(jars.JarsMissing, match=r"kafka-clients-3\.9\.1\.jar"):
        jars.kafka_jars()
    assert list((cache / "jars").iterdir()) == []


def test_kafka_jars_downloaded_by_a_concurrent_process_are_used_and_not_replaced(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = cache / "jars" / "kafka-3.9.1"

    def fetch(jar: object, target: Path, scratch: Path) -> None:
        (target / "kafka-clients-3.9.1.jar").touch()
        folder.mkdir()
        (folder / "theirs.jar").touch()

    monkeypatch.setattr(jars, "fetch", fetch)
    assert jars.kafka_jars() == folder and [path.name for path in folder.iterdir()] == ["theirs.jar"]


def test_missing_java_raises_an_error_that_says_to_install_jdk_17(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: None)
    with pytest.raises(jars.JarsMissing, match="`java` is not on the PATH; install a JDK 17"):
        jars.kafka_jars()


def test_missing_maven_and_pyspark_raise_an_error_that_says_to_pip_install_pyspark(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda program: "/bin/java" if program == "java" else None)
    monkeypatch.setattr(jars, "find_ivy", lambda: None)
    with pytest.raises(jars.JarsMissing, match="pip install pyspark"):
        jars.kafka_jars()


def test_failing_download_program_raises_an_error_that_contains_its_output() -> None:
    with pytest.raises(jars.JarsMissing, match="no such thing"):
        jars.run(["sh", "-c", "echo no such thing >&2; exit 3"])
