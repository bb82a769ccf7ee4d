"""Download of Kafka's jars into a cache outside the source tree that all test runs of a user share.

The download uses Maven if that is installed, or else the Ivy jar of pyspark, so that a JDK 17 and pip are enough. The folder of a version is created
by one rename: an interrupted run leaves nothing incomplete, and two runs can download at the same time.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

KAFKA_VERSION = "3.9.1"
NEWER_VERSION = "4.2.0"
"""The Kafka release for tests of features that 3.9.1 (`KAFKA_VERSION`) lacks."""
ZOOKEEPER_VERSIONS = {"0.11.0.3": "2.11", "1.1.1": "2.12", "2.8.2": "2.13"}
"""Maps Kafka versions that need ZooKeeper to the version of Scala for which their jars are downloaded."""
XML_BINDING = ("javax.xml.bind", "jaxb-api", "2.3.1")  # Kafka 0.11 uses it, and a JDK 17 lacks it
BINDING = ("org.slf4j", "slf4j-nop", "1.7.36")  # keeps the broker's logging quiet

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>none</groupId><artifactId>none</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{dependencies}</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"

Coordinates = tuple[str, str, str]


class JarsMissing(RuntimeError):
    """Raised if Kafka's jars are missing and cannot be downloaded. The message says what to do."""


def cache_folder() -> Path:
    """Return the folder for all downloads: ``$KAFKAPROTO_CACHE``, or ``~/.cache/kafkaproto``."""
    return Path(os.environ.get("KAFKAPROTO_CACHE") or Path.home() / ".cache" / "kafkaproto")


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """Return the folder with ``kafka_2.13``, ``kafka-clients`` and their dependencies, downloaded on first use.

    Raises JarsMissing if the download fails.
    """
    return _fetched(f"kafka-{version}", [("org.apache.kafka", "kafka_2.13", version), BINDING], version)


def zookeeper_kafka_jars(version: str) -> Path:
    """Return the folder with the jars of a Kafka version that needs ZooKeeper, downloaded on first use with their dependencies.

    version: a key of `ZOOKEEPER_VERSIONS`, such as "2.8.2". Raises JarsMissing if the download fails.
    """
    kafka = "org.apache.kafka", f"kafka_{ZOOKEEPER_VERSIONS[version]}", version
    return _fetched(f"kafka-{version}", [kafka, XML_BINDING, BINDING], version)


def tools_jars(version: str = KAFKA_VERSION) -> Path:
    """Return the folder with Kafka's command-line tools and their dependencies, downloaded on first use.

    Raises JarsMissing if the download fails.
    """
    coordinates_list = [("org.apache.kafka", name, version) for name in ("kafka_2.13", "kafka-tools")]
    return _fetched(f"kafka-tools-{version}", [*coordinates_list, BINDING], version)


def streams_jars(version: str = KAFKA_VERSION) -> Path:
    """Return the folder with `kafka-streams` and its dependencies, downloaded on first use. Raises JarsMissing if the download fails."""
    return _fetched(f"kafka-streams-{version}", [("org.apache.kafka", "kafka-streams", version), BINDING], version)


def _fetched(name: str, coordinates_list: Sequence[Coordinates], version: str) -> Path:
    folder = cache_folder() / "jars" / name
    if folder.is_dir():
        return folder
    require("java", "a JDK 17 (Debian: openjdk-17-jdk-headless, macOS: brew install openjdk@17)")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetching-") as scratch:
        fetched = Path(scratch) / "jars"
        fetched.mkdir()
        fetch(coordinates_list, fetched, Path(scratch))
        if not list(fetched.glob(f"kafka-clients-{version}.jar")):
            raise JarsMissing(
                f"the files that were downloaded for {folder} include no kafka-clients-{version}.jar; check that Kafka {version} exists"
            )
        try:
            fetched.rename(folder)
        except OSError:
            if not folder.is_dir():  # no concurrent run has created it: the rename itself failed
                raise
    return folder


def clients_jar(version: str = KAFKA_VERSION) -> Path:
    """Return the path of the jar `kafka-clients`, which contains Kafka's message classes and the JSON definitions of the messages."""
    return kafka_jars(version) / f"kafka-clients-{version}.jar"


def fetch(coordinates_list: Sequence[Coordinates], target: Path, scratch: Path) -> None:
    """Download the jars with the given Maven coordinates, and all their dependencies, into the folder `target`.

    scratch: folder for temporary files. Raises JarsMissing if neither Maven nor Ivy is installed, or if a download fails.
    """
    if shutil.which("mvn"):
        fetch_with_maven(coordinates_list, target, scratch)
        return
    ivy = find_ivy()
    if ivy is None:
        raise JarsMissing(
            "Kafka's jars are downloaded with Maven or with the Ivy jar of pyspark, and neither is installed: run "
            "`pip install pyspark==4.0.0` or install Maven, then repeat the command"
        )
    for coordinates in coordinates_list:
        fetch_with_ivy(ivy, coordinates, target)


def fetch_with_maven(coordinates_list: Sequence[Coordinates], target: Path, scratch: Path) -> None:
    dependencies = "".join(DEPENDENCY.format(*coordinates) for coordinates in coordinates_list)
    (scratch / "pom.xml").write_text(POM.format(dependencies=dependencies))
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={target}", "-DincludeScope=runtime"]
    repository = f"-Dmaven.repo.local={cache_folder() / 'm2'}"
    run(["mvn", "-B", "-q", repository, "-f", str(scratch / "pom.xml"), *goal])


def fetch_with_ivy(ivy: Path, coordinates: Coordinates, target: Path) -> None:
    cache = cache_folder() / "ivy"
    pattern = f"{target}/[artifact]-[revision].[ext]"
    command = ["java", "-jar", str(ivy), "-cache", str(cache), "-confs", "default", "-types", "jar", "bundle"]
    run([*command, "-dependency", *coordinates, "-retrieve", pattern])


def find_ivy() -> Path | None:
    """Return the path of the Ivy jar in the pyspark that is installed for this interpreter; None if there is no such jar."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.origin:
        return None
    return next(iter(sorted((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))), None)


def require(program: str, remedy: str) -> None:
    if shutil.which(program) is None:
        raise JarsMissing(f"`{program}` is not on the PATH; install {remedy}")


def run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        end_of_output = "\n".join((result.stdout + result.stderr).splitlines()[-15:])
        raise JarsMissing(
            f"`{' '.join(command[:4])} …` failed; check the network connection; the end of its output:\n{end_of_output}"
        )


if __name__ == "__main__":
    for version in sys.argv[1:] or (KAFKA_VERSION, NEWER_VERSION):
        sys.stdout.write(f"{kafka_jars(version)}\n")
