"""The table of releases compared with the ``ApiKeys`` of kafka-clients jars.

The test run compares the two jars that it downloads. ``python -m tests.oracle.test_releases FOLDER`` compares every
``kafka-clients-*.jar`` of a folder and prints the differences.
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
"""Releases whose brokers use ZooKeeper by default and that distinguish listeners."""


def ask(jar: Path, release: str) -> dict[int, tuple[str, int, int]]:
    """Return API key to (name, lowest version, highest version) from the classes of a jar."""
    listener = "ZK_BROKER" if release in ZOOKEEPER_LISTENERS else "BROKER"
    logging = next(cache_folder().glob("jars/*/slf4j-api-1*.jar"))  # old releases log while their classes load
    command = ["java", "-cp", f"{jar}:{logging}", str(PROGRAM), listener]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {int(key): (name, int(low), int(high)) for key, name, low, high in map(str.split, lines)}


def ranges(apis: dict[int, tuple[str, int, int]]) -> Ranges:
    return {key: (low, high) for key, (_, low, high) in apis.items()}


@pytest.mark.parametrize("version", [KAFKA_VERSION, NEWER_VERSION])
def test_built_in_api_versions_of_each_release_equal_those_of_the_kafka_jar(version: str) -> None:
    apis = ask(clients_jar(version), version.rpartition(".")[0])
    assert versions(version) == ranges(apis)
    for key, (name, _, _) in apis.items():
        ours = APIS[key].name if key in APIS else NAMES[key]
        assert snake_case(ours).upper() == name or (ours, name) in RENAMED


RENAMED = {("ListConfigResources", "LIST_CLIENT_METRICS_RESOURCES")}
"""APIs that an older release calls by another name."""


def release_of(jar: Path) -> str:
    """Return the release name in the table: ``kafka-clients-0.10.2.2.jar`` is ``0.10.2``."""
    version = re.fullmatch(r"kafka-clients-([\d.]+)\.jar", jar.name)
    if version is None:
        raise ValueError(f"{jar.name} is no kafka-clients jar")
    return next(name for name in reversed(releases()) if version[1].startswith(f"{name}."))


def main(folder: Path) -> int:
    """Compare the jars of a folder with the table and return 1 if any differs."""
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
