"""The table of releases against the ``ApiKeys`` of kafka-clients jars.

The test run asks the two jars that it has. ``python -m tests.oracle.test_releases FOLDER`` compares every
``kafka-clients-*.jar`` of a folder and prints what differs.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, cache_folder, clients_jar
from kafkaproto.api import APIS
from kafkaproto.generator.spec import snake_case
from kafkaproto.releases import NAMES, Ranges, releases, versions

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).with_name("Releases.java")
ZOOKEEPER_LISTENERS = ("2.8", "3.0", "3.1", "3.2")
"""Releases whose brokers ran with ZooKeeper unless told, and that tell their listeners apart."""


def ask(jar: Path, release: str) -> dict[int, tuple[str, int, int]]:
    """API key to name, lowest and highest version, as the classes of a jar say it."""
    listener = "ZK_BROKER" if release in ZOOKEEPER_LISTENERS else "BROKER"
    logging = next(cache_folder().glob("jars/*/slf4j-api-1*.jar"))  # old releases log while they load
    command = ["java", "-cp", f"{jar}:{logging}", str(PROGRAM), listener]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {int(key): (name, int(low), int(high)) for key, name, low, high in map(str.split, lines)}


def ranges(found: dict[int, tuple[str, int, int]]) -> Ranges:
    return {key: (low, high) for key, (_, low, high) in found.items()}


@pytest.mark.parametrize("version", [KAFKA_VERSION, NEWER_VERSION])
def test_the_table_says_what_the_jar_says(version: str) -> None:
    found = ask(clients_jar(version), version.rpartition(".")[0])
    assert versions(version) == ranges(found)
    for key, (name, _, _) in found.items():
        ours = APIS[key].name if key in APIS else NAMES[key]
        assert snake_case(ours).upper() == name or (ours, name) in RENAMED


RENAMED = {("ListConfigResources", "LIST_CLIENT_METRICS_RESOURCES")}
"""Where an older release has another name for an API."""


def release_of(jar: Path) -> str:
    """``kafka-clients-0.10.2.2.jar`` to ``0.10.2``, the name that the table has."""
    version = re.fullmatch(r"kafka-clients-([\d.]+)\.jar", jar.name)
    if version is None:
        raise ValueError(f"{jar.name} is no kafka-clients jar")
    return next(name for name in reversed(releases()) if version[1].startswith(f"{name}."))


def main(folder: Path) -> int:
    """Exit status 1 if a jar says something else than the table."""
    differing = 0
    for jar in sorted(folder.glob("kafka-clients-*.jar")):
        release = release_of(jar)
        theirs = ranges(ask(jar, release))
        same = theirs == versions(release)
        differing += not same
        sys.stdout.write(f"{release}: {'same' if same else theirs}\n")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
