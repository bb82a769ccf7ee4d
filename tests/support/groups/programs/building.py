"""The commands that run the member programs. What has to be compiled or installed is kept in the cache folder of the tests."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.rivals.jars import NEWER_VERSION, cache_folder, kafka_jars

SOURCES = Path(__file__).parent
JAVA_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx128m")


def command(client: str) -> list[str]:
    """Return the command that runs the member program of a client: one of `CLIENTS`.

    Builds the program first if its sources have changed. Raises JarsMissing, FileNotFoundError without Go or npm, and
    CalledProcessError if the build fails.
    """
    return CLIENTS[client]()


def _java() -> list[str]:
    jars = f"{kafka_jars(NEWER_VERSION)}/*"

    def build(folder: Path) -> None:
        _run(["javac", "-cp", jars, "-d", str(folder), str(SOURCES / "Member.java")], folder)

    classes = _built("java", [SOURCES / "Member.java"], build)
    return ["java", *JAVA_FLAGS, "-cp", f"{classes}{os.pathsep}{jars}", "Member"]


def _go() -> list[str]:
    sources = [SOURCES / "go" / name for name in ("go.mod", "go.sum", "main.go")]

    def build(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        _run(["go", "build", "-mod=readonly", "-o", "member", "."], folder)

    return [str(_built("go", sources, build) / "member")]


def _node() -> list[str]:
    sources = [SOURCES / "node" / name for name in ("package.json", "package-lock.json", "member.js")]

    def build(folder: Path) -> None:
        for source in sources:
            shutil.copy(source, folder)
        _run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], folder)

    return ["node", str(_built("node", sources, build) / "member.js")]


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.support.groups.programs.{module}"]


def _built(name: str, sources: Sequence[Path], build: Callable[[Path], None]) -> Path:
    """Return the folder with what `build` makes of the sources. Two test runs may build at the same time: the last one is kept."""
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    folder = cache_folder() / "members" / f"{name}-{digest}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".building-") as scratch:
            made = Path(scratch) / name
            made.mkdir()
            build(made)
            try:
                made.rename(folder)
            except OSError:
                if not folder.is_dir():
                    raise
    return folder


def _run(arguments: list[str], folder: Path) -> None:
    subprocess.run(arguments, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


CLIENTS: dict[str, Callable[[], list[str]]] = {
    "java": _java,
    "confluent-kafka": _python("confluent_member"),
    "kafka-python": _python("kafka_python_member"),
    "aiokafka": _python("aiokafka_member"),
    "franz-go": _go,
    "kafkajs": _node,
}
"""The clients by name, with the functions that return their commands."""
