"""docker-compose.yml against the command line: no engine runs here, so whatever can be read is checked."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.listeners import Listener, listeners_of
from kafkaproto.broker.server.main import parser

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


@pytest.fixture(scope="module")
def options(services: dict[str, Any]) -> Any:
    return parser().parse_args(services["kafka"]["command"])


@pytest.fixture(scope="module")
def listeners(options: Any) -> dict[int, dict[str, Listener]]:
    """By broker and name, as the server would open them."""
    cluster = Cluster(options.brokers, dict(options.settings))
    return {
        node.broker_id: {one.name: one for one in listeners_of(node.config, options.host, options.port)}
        for node in cluster.nodes
    }


def test_the_command_runs_three_brokers_with_racks_of_their_own(options: Any) -> None:
    cluster = Cluster(options.brokers, dict(options.settings))
    assert [node.config["broker.rack"] for node in cluster.nodes] == ["a", "b", "c"]
    assert cluster.nodes[0].config["replica.selector.class"].endswith("RackAwareReplicaSelector")
    assert cluster.config.without_effect() == []
    for name, partitions, replicas in options.topic:
        cluster.controller.create_topic(cluster.controller.plan_topic(name, partitions, replicas))


def test_every_broker_listens_inside_and_outside_on_ports_of_its_own(listeners: dict[int, dict[str, Listener]]) -> None:
    assert [sorted(of_one) for of_one in listeners.values()] == [["INSIDE", "OUTSIDE"]] * 3
    bound = [one.port for of_one in listeners.values() for one in of_one.values()]
    assert len(set(bound)) == 6
    assert {one.host for of_one in listeners.values() for one in of_one.values()} == {"0.0.0.0"}


def test_published_ports_are_the_outside_listeners_and_what_they_tell(
    services: dict[str, Any], listeners: dict[int, dict[str, Listener]]
) -> None:
    outside = [of_one["OUTSIDE"] for of_one in listeners.values()]
    assert [f"{one.advertised_port}:{one.port}" for one in outside] == services["kafka"]["ports"]
    assert {one.advertised_host for one in outside} == {"localhost"}


def test_inside_listeners_are_told_by_the_name_of_the_service(listeners: dict[int, dict[str, Listener]]) -> None:
    for of_one in listeners.values():
        inside = of_one["INSIDE"]
        assert (inside.advertised_host, inside.advertised_port) == ("kafka", inside.port)


def test_the_health_check_asks_every_broker(
    services: dict[str, Any], listeners: dict[int, dict[str, Listener]]
) -> None:
    kind, program, switch, code = services["kafka"]["healthcheck"]["test"]
    assert (kind, program, switch) == ("CMD", "python", "-c")
    compile(code, "healthcheck", "exec")
    ports = re.search(r"in \(([\d, ]+)\)", code)
    assert ports is not None
    assert [int(port) for port in ports[1].split(",")] == [of_one["INSIDE"].port for of_one in listeners.values()]


def test_the_image_copies_what_is_there_and_starts_the_script(services: dict[str, Any]) -> None:
    text = services["kafka"]["build"]["dockerfile_inline"]
    copied = [name for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE) for name in line.split()[:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    assert named | {"kafkaproto", "broker", "pipeline"} == set(copied)
    assert 'ENTRYPOINT ["kafkaproto", "broker"]' in text
    assert "kafkaproto" in project["project"]["scripts"]
    version = re.search(r"^FROM python:(\d+\.\d+)", text, re.MULTILINE)
    assert version is not None
    assert f">={version[1]}" == project["project"]["requires-python"]


@pytest.mark.spark
def test_the_spark_job_is_a_profile_that_waits_for_the_brokers(
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
    inside = [of_one["INSIDE"] for of_one in listeners.values()]
    assert job.bootstrap == ",".join(f"{one.advertised_host}:{one.advertised_port}" for one in inside)
    assert {job.source, job.target} == {name for name, _, _ in options.topic}
