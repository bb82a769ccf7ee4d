"""The examples of docs/how-to/containers.md that need a container engine, compared with the options and the settings of the broker."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest
import yaml

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.definitions import definitions_of
from kafkaproto.broker.config.environment import settings_of_environment
from kafkaproto.broker.config.listeners import Listener, listeners_of
from kafkaproto.broker.server.main import parser
from tests.documentation.blocks import ROOT, Block, blocks

RELEASE = "3.9"
FIRST_PORT = 9092


def examples(language: str) -> list[Block]:
    page = (ROOT / "docs" / "how-to" / "containers.md").read_text()
    return [block for block in blocks(page) if block.language == language]


def listeners(variables: Mapping[str, str]) -> list[Listener]:
    """Return the listeners of a container with these variables. Raises AssertionError if one of them is not a setting."""
    warnings: list[str] = []
    settings = settings_of_environment(variables, definitions_of(RELEASE), warnings.append)
    assert warnings == []
    return listeners_of(ClusterConfig(settings, release=RELEASE).for_broker(0), "0.0.0.0", FIRST_PORT)


def test_documented_docker_commands_publish_the_ports_of_their_brokers() -> None:
    [block] = examples("bash")
    build, *runs = [shlex.split(line) for line in block.text.splitlines()]
    assert build == ["docker", "build", "-t", "kafkaproto", "."] and len(runs) == 2
    for docker, run, remove, publish, ports, image, *arguments in runs:
        assert (docker, run, remove, publish, image) == ("docker", "run", "--rm", "-p", "kafkaproto")
        options = parser().parse_args(["--container", "/mnt/shared/config", *arguments])
        last = FIRST_PORT + options.brokers - 1
        published = f"{FIRST_PORT}-{last}" if options.brokers > 1 else f"{FIRST_PORT}"
        assert ports == f"{published}:{published}"


def test_documented_container_services_publish_ports_that_they_advertise() -> None:
    services = [yaml.safe_load(block.text)["services"]["kafka"] for block in examples("yaml")]
    assert len(services) == 2
    for service in services:
        environment = service.get("environment") or service["env"]
        variables = {name: str(value) for name, value in environment.items()}
        outside = [listener for listener in listeners(variables) if listener.advertised_host in ("", "localhost")]
        ports = [f"{listener.advertised_port or listener.port}:{listener.port}" for listener in outside]
        assert ports == service["ports"]


def test_documented_testcontainers_example_advertises_the_port_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    class Container:
        """Stands in for `DockerContainer` and remembers what the example sets."""

        def __init__(self, image: str) -> None:
            self.image = image
            self.ports: dict[int, int] = {}
            self.variables: dict[str, str] = {}

        def with_bind_ports(self, container: int, host: int) -> Container:
            self.ports[container] = host
            return self

        def with_env(self, key: str, value: str) -> Container:
            self.variables[key] = value
            return self

    module = ModuleType("testcontainers.core.container")
    module.DockerContainer = Container  # type: ignore[attr-defined]
    for name in ("testcontainers", "testcontainers.core"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    [block] = examples("python")
    names: dict[str, Any] = {}
    exec(block.text, names)
    kafka = names["kafka"]
    assert kafka.image == "kafkaproto" and re.fullmatch(r"\d+", str(names["port"]))
    [listener] = listeners(kafka.variables)
    assert kafka.ports == {listener.port: listener.advertised_port} == {FIRST_PORT: names["port"]}
    assert listener.advertised_host == "localhost"
