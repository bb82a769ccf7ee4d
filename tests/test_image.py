"""The Dockerfile and docker-compose.yml performed without a container engine: build, start, health check and stop."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.rivals.real_kafka import free_ports
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.pipeline.ask import ask
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.image import Image

pytestmark = [
    pytest.mark.slow,
    pytest.mark.clients,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
]
ROOT = Path(__file__).resolve().parent.parent
GRACE_SECONDS = 10.0
"""How long an engine waits after the signal to stop before it kills."""
READY_SECONDS = 20.0
PORT = re.compile(r"(?<=:)\d{4,5}\b|\b\d{4,5}(?=:)")
KNOWN_TO_COMPOSE = {"build", "command", "ports", "healthcheck", "stop_signal"}

MOUNTED = "/mnt/shared/config"
DATA = "/var/lib/kafka/data"


class Container:
    """A running container: the process of the entry point, and its environment."""

    def __init__(self, image: Image, command: Sequence[str], variables: Mapping[str, str], brokers: int) -> None:
        self.image = image
        self.variables = variables
        self.process = image.run(command, variables)
        assert self.process.stdout is not None
        self.addresses = [self.process.stdout.readline().strip() for _ in range(brokers)]

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Stop the container as an engine does, and return its exit status and its log."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, logged = self.process.communicate(timeout=GRACE_SECONDS)
        return self.process.returncode, logged


Run = Callable[..., Container]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Image(ROOT, tmp_path_factory.mktemp("image"))


@pytest.fixture
def image(built: Image) -> Image:
    """Return the image with an empty volume and mounted folder, as in a new container."""
    for folder in (DATA, MOUNTED):
        for path in built.path(folder).iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return built


@pytest.fixture
def run(image: Image) -> Iterator[Run]:
    """Yield a function that starts containers; they are stopped after the test."""
    containers: list[Container] = []

    def start(*command: str, brokers: int = 1, **variables: str) -> Container:
        containers.append(Container(image, command, variables, brokers))
        return containers[-1]

    yield start
    for container in containers:
        if container.process.poll() is None:
            container.stop()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """Return the service `kafka` with free ports of this machine in place of its own."""
    return with_free_ports(yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["kafka"], 6)


def with_free_ports(service: Mapping[str, Any], count: int) -> dict[str, Any]:
    """Return a service with other ports. count: how many different ports it has."""
    text = yaml.safe_dump(service)
    ports = sorted({*PORT.findall(text)})
    assert len(ports) == count
    free = dict(zip(ports, map(str, free_ports(count)), strict=True))
    moved: dict[str, Any] = yaml.safe_load(PORT.sub(lambda match: free[match[0]], text))
    return moved


def seconds(text: str) -> float:
    assert text.endswith("s")
    return float(text.removesuffix("s"))


def reached(bootstrap: str, topic: str = "orders") -> list[bytes]:
    """Produce and consume with kafka-python through the addresses in the metadata, and return the values."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    producer.send(topic, b"value", partition=0).get(timeout=READY_SECONDS)
    producer.close()
    return consumed(bootstrap, topic)


def consumed(bootstrap: str, topic: str = "orders") -> list[bytes]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    records = consumer.poll(timeout_ms=int(READY_SECONDS * 1000))
    consumer.close()
    return [record.value for batch in records.values() for record in batch]


def advertised(address: str) -> list[tuple[str, int]]:
    """Return the addresses of all brokers that a broker reports."""
    brokers = ask(address, MetadataRequest([]), 1).brokers
    return [(broker.host, broker.port) for broker in sorted(brokers, key=lambda broker: broker.node_id)]


def consecutive_ports(count: int) -> int:
    """Return the first of `count` consecutive free ports."""
    for port in free_ports(20):
        try:
            sockets = [socket.create_server(("0.0.0.0", port + i)) for i in range(count)]
        except OSError:
            continue
        for bound_socket in sockets:
            bound_socket.close()
        return port
    raise AssertionError("no ports are free")


def test_docker_image_contains_the_package_but_no_tests(image: Image) -> None:
    copied = {path.relative_to(image.root).as_posix() for path in image.path("/opt/kafkaproto").iterdir()}
    assert "opt/kafkaproto/kafkaproto" in copied
    assert {"opt/kafkaproto/tests", "opt/kafkaproto/.git", "opt/kafkaproto/.venv"} & copied == set()
    program = "import kafkaproto, sys; print(kafkaproto.__file__)"
    completed = subprocess.run(
        [image.path("/usr/bin/python"), "-c", program],
        cwd=image.root,
        env=image.environment({}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.startswith(str(image.path("/usr/lib")))


def test_docker_image_runs_as_an_unprivileged_user_on_a_supported_python(image: Image) -> None:
    user, group = map(int, image.user.split(":"))
    assert user and group
    assert image.base in {f"python:{version}-slim" for version in ("3.11", "3.12", "3.13")}
    assert image.exposed == [9092]
    assert image.volumes == [DATA]
    assert image.path(DATA).stat().st_mode & 0o777 == 0o777
    [package] = image.path("/usr/lib").glob("python*/site-packages/kafkaproto")
    assert [path for path in package.rglob("*.py") if not path.stat().st_mode & 0o004] == []


def test_compose_brokers_become_healthy_and_stop_on_the_stop_signal(
    image: Image, compose: dict[str, Any], run: Run
) -> None:
    assert compose.keys() == KNOWN_TO_COMPOSE and compose["build"] == "."
    check = compose["healthcheck"]
    kind, *health_command = check["test"]
    assert kind == "CMD"
    assert image.check(health_command, {}).returncode == 1
    container = run(*compose["command"], brokers=3)
    start_s = time.monotonic()
    while (healthy := image.check(health_command, container.variables)).returncode:
        assert time.monotonic() - start_s < seconds(check["interval"]) * check["retries"], healthy.stderr
        time.sleep(0.2)
    assert healthy.stderr == ""
    outside = [f"localhost:{port.partition(':')[0]}" for port in compose["ports"]]
    assert [port.split(":")[0] for port in compose["ports"]] == [port.split(":")[1] for port in compose["ports"]]
    for address in outside:
        assert [f"{host}:{port}" for host, port in advertised(address)] == outside
    inside = [("kafka", int(address.rpartition(":")[2])) for address in health_command[2:]]
    assert advertised(health_command[-1]) == inside
    assert reached(outside[1], "events") == [b"value"]
    assert container.stop(getattr(signal, compose["stop_signal"]))[0] == 0
    assert image.check(health_command, {}).returncode == 1


def test_docker_image_accepts_environment_variables_of_a_single_node_kafka_image(image: Image, run: Run) -> None:
    inside, outside, controller = free_ports(3)
    container = run(
        KAFKA_NODE_ID="1",
        KAFKA_PROCESS_ROLES="broker,controller",
        KAFKA_LISTENERS=f"CONTROLLER://:{controller},PLAINTEXT_HOST://:{outside},PLAINTEXT://:{inside}",
        KAFKA_ADVERTISED_LISTENERS=f"PLAINTEXT_HOST://localhost:{outside},PLAINTEXT://broker:{inside}",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
        KAFKA_CONTROLLER_LISTENER_NAMES="CONTROLLER",
        KAFKA_CONTROLLER_QUORUM_VOTERS=f"1@broker:{controller}",
        KAFKA_INTER_BROKER_LISTENER_NAME="PLAINTEXT",
        KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR="1",
        KAFKA_NUM_PARTITIONS="3",
        KAFKA_LOG_DIRS="/tmp/kraft-combined-logs",
        KAFKA_HEAP_OPTS="-Xmx1g",
        CLUSTER_ID="4L6g3nShT-eMCtK--X86sw",
    )
    assert container.addresses == [f"localhost:{outside}"]
    assert image.check(image.healthcheck, container.variables).returncode == 0
    assert reached(container.addresses[0]) == [b"value"]
    [topic] = ask(container.addresses[0], MetadataRequest(None), 1).topics
    assert len(topic.partitions) == 3
    assert advertised(f"localhost:{inside}") == [("broker", inside)]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", controller), 1).close()
    status, logged = container.stop()
    assert status == 0
    assert "environment variables that --container ignores: CLUSTER_ID, KAFKA_HEAP_OPTS" in logged
    assert image.check(image.healthcheck, container.variables).returncode == 1


def test_documented_compose_service_is_reachable_from_host_and_containers(image: Image, run: Run) -> None:
    page = (ROOT / "docs" / "how-to" / "containers.md").read_text()
    [text] = [block for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "environment:" in block]
    service = with_free_ports(yaml.safe_load(text)["services"]["kafka"], 2)
    [(host_port, container_port)] = [port.split(":") for port in service["ports"]]
    assert host_port == container_port
    container = run(**service["environment"])
    assert image.check(image.healthcheck, container.variables).returncode == 0
    assert reached(f"localhost:{host_port}") == [b"value"]
    inside = service["environment"]["KAFKA_LISTENERS"].partition(",")[0].rpartition(":")[2]
    assert advertised(f"localhost:{inside}") == [("kafka", int(inside))]


def test_container_starts_if_only_an_advertised_listener_is_set(image: Image, run: Run) -> None:
    [port] = free_ports(1)
    container = run(KAFKA_ADVERTISED_LISTENERS=f"PLAINTEXT://localhost:{port}")
    assert image.check(image.healthcheck, container.variables).returncode == 0
    assert reached(f"localhost:{port}") == [b"value"]


def test_docker_run_arguments_after_the_image_name_are_broker_command_options(run: Run) -> None:
    port = consecutive_ports(3)
    container = run("--brokers", "3", "--port", str(port), "--topic", "orders:6:3", brokers=3)
    assert container.addresses == [f"localhost:{port + i}" for i in range(3)]
    assert advertised(container.addresses[2]) == [("localhost", port + i) for i in range(3)]
    assert reached(container.addresses[0]) == [b"value"]
    assert container.stop(signal.SIGINT)[0] == 0


def test_container_volume_keeps_records_for_the_next_container(run: Run) -> None:
    [port] = free_ports(1)
    command = ("--port", str(port), "--data-dir", DATA)
    first = run(*command)
    assert reached(first.addresses[0]) == [b"value"]
    first.stop()
    assert consumed(run(*command).addresses[0]) == [b"value"]


def test_container_environment_variables_override_the_mounted_properties_file(image: Image, run: Run) -> None:
    [port] = free_ports(1)
    lines = (f"listeners=PLAINTEXT://:{port}", f"advertised.listeners=PLAINTEXT://localhost:{port}", "num.partitions=2")
    (image.path(MOUNTED) / "server.properties").write_text("\n".join(lines))
    container = run(KAFKA_NUM_PARTITIONS="5")
    assert image.check(image.healthcheck, container.variables).returncode == 0
    assert reached(f"localhost:{port}") == [b"value"]
    [topic] = ask(f"localhost:{port}", MetadataRequest(None), 1).topics
    assert len(topic.partitions) == 5


def test_unknown_environment_variable_of_a_container_logs_the_nearest_known_name(run: Run) -> None:
    status, logged = run(KAFKA_NUM_PARTITION="5").stop()
    assert status == 0
    [line] = [line for line in logged.splitlines() if "KAFKA_NUM_PARTITION" in line]
    assert "WARNING" in line and "KAFKA_NUM_PARTITIONS" in line
