"""Environment variables as settings, compared with the Kafka class that writes the image's properties file."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, kafka_jars
from kafkaproto.broker.config.definitions import definitions_of
from kafkaproto.broker.config.environment import FOR_THE_JVM, settings_of_environment
from kafkaproto.broker.config.properties import properties

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]

VARIABLES = {
    "KAFKA_BROKER_RACK": " a\\u00e9\\tb=c:d #e ",
    "KAFKA_FETCH_MAX_BYTES": "2048\nmessage.max.bytes=7",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "KAFKA_LISTENER_NAME_PLAINTEXT_MAX_CONNECTIONS": "5",
    "KAFKA_LISTENER_NAME_A__B___C_MAX_CONNECTIONS": "6",
    "KAFKA_LOG_RETENTION_MS": "-1",
    "KAFKA_NUM_PARTITIONS": "3",
}


def written_by_kafka(version: str, variables: dict[str, str], folder: Path) -> dict[str, str]:
    """Return the settings of the file that Kafka writes. Kafka then fails to format a log directory, which does not affect the file."""
    options = []
    for name in ("default", "mounted", "final"):
        (folder / name).mkdir()
        options += [f"--{name}-configs-dir", str(folder / name)]
    command = ["java", "-cp", f"{kafka_jars(version)}/*", "kafka.docker.KafkaDockerWrapper", "setup", *options]
    (folder / "final" / "server.properties").touch()
    subprocess.run(command, env={"PATH": os.environ["PATH"], **variables}, capture_output=True, check=False)
    return {entry.name: entry.value for entry in properties((folder / "final" / "server.properties").read_text())}


@pytest.mark.parametrize(("version", "release"), [(KAFKA_VERSION, "3.9"), (NEWER_VERSION, "4.2")])
def test_environment_variables_set_the_same_broker_settings_as_in_the_kafka_image(
    version: str, release: str, tmp_path: Path
) -> None:
    variables = VARIABLES | dict.fromkeys(FOR_THE_JVM, "a=b")
    written = written_by_kafka(version, variables, tmp_path)
    assert len(written) == len(VARIABLES) + 1
    assert settings_of_environment(variables, definitions_of(release)) == written
