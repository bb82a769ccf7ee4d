"""The commands of test programs that use client libraries. What has to be compiled or installed is kept in the cache folder of the tests.

Each function raises CalledProcessError if a build fails.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.rivals.jars import NEWER_VERSION, cache_folder, kafka_jars, streams_jars
from benchmarks.rivals.real_kafka import class_archive

JAVA_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx128m")


def java(source: Path, version: str = NEWER_VERSION, *, streams: bool = False) -> list[str]:
    """Return the command that runs a Java class with the clients, or Kafka Streams, of a Kafka release. Raises JarsMissing.

    Without Streams, the JVM starts with Kafka's archive of classes, which needs the jars first on the class path.
    """
    folder = (streams_jars if streams else kafka_jars)(version)
    class_path = f"{folder}/*{os.pathsep}{java_classes(source, version, folder)}"
    archive = [] if streams else [f"-XX:SharedArchiveFile={class_archive(version)}"]
    return ["java", *JAVA_FLAGS, *archive, "-cp", class_path, source.stem]


def java_classes(source: Path, version: str, jars: Path) -> Path:
    """Return the folder with the classes of a Java source, compiled with these jars of a Kafka release."""

    def build(folder: Path) -> None:
        _run(["javac", "-cp", f"{jars}/*", "-d", str(folder), str(source)], folder)

    return _built(f"java-{version}", [source], build)


def go(folder: Path) -> list[str]:
    """Return the command of the Go program in a folder. Raises FileNotFoundError without Go."""
    sources = [folder / name for name in ("go.mod", "go.sum", "main.go")]

    def build(target: Path) -> None:
        for source in sources:
            shutil.copy(source, target)
        _run(["go", "build", "-mod=readonly", "-o", "program", "."], target)

    return [str(_built("go", sources, build) / "program")]


def node(script: Path) -> list[str]:
    """Return the command of a JavaScript program, whose packages are locked beside it. Raises FileNotFoundError without npm."""
    sources = [script.with_name(name) for name in ("package.json", "package-lock.json", script.name)]

    def build(target: Path) -> None:
        for source in sources:
            shutil.copy(source, target)
        _run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], target)

    return ["node", str(_built("node", sources, build) / script.name)]


def python(module: str) -> list[str]:
    """Return the command of a Python program, by the name of its module."""
    return [sys.executable, "-m", module]


def _built(name: str, sources: Sequence[Path], build: Callable[[Path], None]) -> Path:
    """Return the folder with the files that `build` makes from the sources. Two test runs may build at the same time: the last one is kept."""
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = cache_folder() / "programs" / f"{name}-{digest}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as scratch:
            scratch_folder = Path(scratch) / name
            scratch_folder.mkdir()
            build(scratch_folder)
            try:
                scratch_folder.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    return folder


def _run(arguments: list[str], folder: Path) -> None:
    subprocess.run(arguments, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
