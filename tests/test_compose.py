"""docker-compose.yml compared with the command line. `test_image.py` builds the image and runs its service."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.listeners import Listener, listeners_of
from kafkaproto.broker.server import health
from kafkaproto.broker.server.main import parser
from tests.support.image import Image, NotKnown, instructions, is_ignored

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


@pytest.fixture(scope="module")
def options(services: dict[str, Any]) -> Any:
    return parser().parse_args(services["kafka"]["command"])


@pytest.fixture(scope="module")
def listeners(options: Any) -> dict[int, dict[str, Listener]]:
    """Return the listeners by broker and name, as the server would open them."""
    cluster = Cluster(options.brokers, dict(options.settings))
    return {
        node.broker_id: {listener.name: listener for listener in listeners_of(node.config, options.host, options.port)}
        for node in cluster.nodes
    }


def test_compose_command_runs_three_brokers_with_different_racks(options: Any) -> None:
    cluster = Cluster(options.brokers, dict(options.settings))
    assert [node.config["broker.rack"] for node in cluster.nodes] == ["a", "b", "c"]
    assert cluster.nodes[0].config["replica.selector.class"].endswith("RackAwareReplicaSelector")
    assert cluster.config.without_effect() == []
    for name, partitions, replicas in options.topic:
        cluster.controller.put_topic(cluster.controller.plan_topic(name, partitions, replicas))


def test_each_compose_broker_has_inside_and_outside_listeners_on_its_own_ports(
    listeners: dict[int, dict[str, Listener]],
) -> None:
    assert [sorted(broker_listeners) for broker_listeners in listeners.values()] == [["INSIDE", "OUTSIDE"]] * 3
    bound = [listener.port for broker_listeners in listeners.values() for listener in broker_listeners.values()]
    assert len(set(bound)) == 6
    assert {listener.host for broker_listeners in listeners.values() for listener in broker_listeners.values()} == {
        "0.0.0.0"
    }


def test_compose_publishes_the_ports_of_the_outside_listeners(
    services: dict[str, Any], listeners: dict[int, dict[str, Listener]]
) -> None:
    outside = [broker_listeners["OUTSIDE"] for broker_listeners in listeners.values()]
    assert [f"{listener.advertised_port}:{listener.port}" for listener in outside] == services["kafka"]["ports"]
    assert {listener.advertised_host for listener in outside} == {"localhost"}


def test_inside_listeners_in_the_compose_file_advertise_the_host_name_kafka(
    listeners: dict[int, dict[str, Listener]],
) -> None:
    for broker_listeners in listeners.values():
        inside = broker_listeners["INSIDE"]
        assert (inside.advertised_host, inside.advertised_port) == ("kafka", inside.port)


def test_compose_health_check_queries_every_broker(
    services: dict[str, Any], listeners: dict[int, dict[str, Listener]]
) -> None:
    kind, program, command, *addresses = services["kafka"]["healthcheck"]["test"]
    assert (kind, program, command) == ("CMD", "kafkaproto", "health")
    health_addresses = health.parser().parse_args(addresses).addresses
    assert health_addresses == [
        ("127.0.0.1", broker_listeners["INSIDE"].port) for broker_listeners in listeners.values()
    ]


def test_dockerfile_copies_all_files_that_the_build_needs(services: dict[str, Any]) -> None:
    assert services["kafka"]["build"] == "."
    lines = list(instructions((ROOT / "Dockerfile").read_text()))
    copied = {name for kind, text in lines if kind == "COPY" for name in text.split()[:-1]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {"pyproject.toml", "README.md", *project["project"]["license-files"]} < copied
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {path.name for path in ROOT.iterdir() if not is_ignored(path.name, ignored)} == copied
    assert not is_ignored("kafkaproto/cli.py", ignored)
    assert is_ignored("kafkaproto/__pycache__/cli.cpython-311.pyc", ignored)


@pytest.mark.parametrize(
    "line",
    [
        "ADD a b",
        "CMD kafkaproto",
        "COPY --chown=1:1 a b",
        "COPY *.py b/",
        "ENTRYPOINT kafkaproto broker",
        "FROM python:3.11 AS build",
        "HEALTHCHECK CMD curl localhost",
        "HEALTHCHECK --retry=1 CMD []",
        "HEALTHCHECK NONE",
        "RUN a && b",
        "RUN <<EOF",
        "USER kafka",
        "WORKDIR app",
    ],
)
def test_dockerfile_parser_for_tests_rejects_instructions_that_it_does_not_support(line: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"{line}\n")
    with pytest.raises((NotKnown, ValueError)):
        Image(tmp_path, tmp_path / "root", with_python=False)


@pytest.mark.spark
def test_spark_job_in_the_compose_file_has_profile_spark_and_waits_for_the_brokers(
    services: dict[str, Any], options: Any, listeners: dict[int, dict[str, Listener]]
) -> None:
    from kafkaproto.pipeline import session, windowed_counts

    spark = services["spark"]
    assert spark["profiles"] == ["spark"]
    assert spark["depends_on"] == {"kafka": {"condition": "service_healthy"}}
    host_folder, folder, mode = spark["volumes"][0].split(":")
    command = spark["command"]
    script = next(i for i, word in enumerate(command) if word.endswith(".py"))
    assert mode == "ro"
    assert (ROOT / host_folder / Path(command[script]).relative_to(folder)).is_file()
    assert f"--packages={session.CONNECTOR}" in command[:script]
    assert spark["image"].startswith(f"spark:{session.CONNECTOR.rsplit(':', 1)[1]}")
    job = windowed_counts.parser().parse_args(command[script + 1 :])
    inside = [broker_listeners["INSIDE"] for broker_listeners in listeners.values()]
    assert job.bootstrap == ",".join(f"{listener.advertised_host}:{listener.advertised_port}" for listener in inside)
    assert {job.source, job.target} == {name for name, _, _ in options.topic}
