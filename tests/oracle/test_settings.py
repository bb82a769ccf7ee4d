"""Settings tables compared with the jars, and DescribeConfigs compared with real brokers."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from kafkaproto.broker.config.properties import properties
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.oracle.settings import path_of, table
from tests.support.oracle.standalone import StandaloneKafka

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND = 0, 1, 2
MIN_ISR = "min.insync.replicas"
VERSIONS = (KAFKA_VERSION, NEWER_VERSION)

GIVEN = {
    "auto.create.topics.enable": "TRUE",
    "broker.rack": "rack ",
    "leader.replication.throttled.rate": "1000",
    "listener.name.plaintext.max.connections": "5",
    "log.cleaner.io.max.bytes.per.second": "12345678.5",
    "log.cleaner.min.cleanable.ratio": "0.0001",
    "log.cleanup.policy": "compact, delete",
    "log.retention.hours": "168",
    "log.retention.minutes": "600",
    "log.roll.hours": "24",
    "log.segment.bytes": "1073741824",
    "message.max.bytes": "2000000",
    "num.network.threads": "3",
    "num.partitions": "2",
    "offsets.retention.minutes": "+7",
    "offsets.topic.replication.factor": "1",
    "socket.request.max.bytes": "104857600",
    "ssl.key.password": "secret",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}
OLDER_ONLY = {"log.message.format.version": "2.8-IV1", "zookeeper.connect": "localhost:2181"}
"""Settings that 4.x does not have. The same file starts both releases, because a broker accepts unknown settings."""

RESOURCES = ((BROKER, "1"), (BROKER, ""), (TOPIC, "t"), (TOPIC, "plain"), (GROUP, "g"))
WRONG_RESOURCES = ((BROKER, "7"), (BROKER, "x"), (TOPIC, "none"), (GROUP, ""), (99, "t"))

SETTLE_SECONDS = 5.0

CHANGES: list[Any] = [
    (BROKER, "1", ("log.retention.ms", SET, "7000"), ("max.connections", SET, "77")),
    (BROKER, "1", ("listener.name.plaintext.max.connections", SET, "78")),
    (BROKER, "", ("log.segment.bytes", SET, "2000000"), ("log.cleaner.threads", SET, "2")),
    (BROKER, "", ("log.retention.ms", SET, "+9000")),
    (BROKER, "", ("log.cleaner.io.max.bytes.per.second", SET, "1E7")),
    (BROKER, "", ("advertised.listeners", SET, "PLAINTEXT://127.0.0.1:1")),
    (BROKER, "1", ("node.id", SET, "3")),
    (BROKER, "1", ("ssl.keystore.location", SET, "/x")),
    (BROKER, "", ("sasl.enabled.mechanisms", SET, "PLAIN")),
    (BROKER, "1", ("sasl.enabled.mechanisms", SET, "PLAIN")),
    (BROKER, "1", (MIN_ISR, SET, "2")),
    (BROKER, "", (MIN_ISR, SET, "2")),
    (BROKER, "", (MIN_ISR, DELETE, None)),
    *((BROKER, name, ("no.such", SET, "1")) for name in ("1", "")),
    *((BROKER, name, ("no.such", operation, "2")) for name in ("1", "") for operation in (APPEND, 9)),
    *((BROKER, name, ("no.such", SET, "3"), ("node.id", SET, "3")) for name in ("1", "")),
    *((BROKER, name, ("listener.name.plaintext.no.such", SET, "1")) for name in ("1", "")),
    (BROKER, "1", ("listener.name.plaintext.num.partitions", SET, "2")),
    (BROKER, "1", ("zookeeper.connect", SET, "localhost:2181")),
    (BROKER, "1", ("remote.list.offsets.request.timeout.ms", SET, "1")),
    *((BROKER, name, ("no.such.either", DELETE, None), ("broker.rack", DELETE, None)) for name in ("1", "")),
    (BROKER, "", ("no.such", DELETE, None)),
    (TOPIC, "t", ("no.such", SET, "1")),
    (TOPIC, "t", ("no.such", APPEND, "1")),
    (TOPIC, "t", ("no.such", DELETE, None)),
    (TOPIC, "t", ("cleanup.policy", SET, "delete"), ("message.format.version", SET, "2.8-IV1")),
    (TOPIC, "t", ("message.format.version", SET, "2.8")),
    (TOPIC, "t", ("message.format.version", SET, "2.8.1")),
    (TOPIC, "t", ("message.format.version", SET, "2.8-IV9")),
    (TOPIC, "t", ("message.timestamp.difference.max.ms", SET, "99")),
    (TOPIC, "t", ("cleanup.policy", SET, "delete"), ("message.timestamp.type", SET, "LogAppendTime")),
    (TOPIC, "t", ("cleanup.policy", APPEND, "compact")),
    (TOPIC, "t", ("message.timestamp.type", SET, "Sometime")),
    (TOPIC, "t", ("segment.bytes", SET, "100")),
    (TOPIC, "t", ("retention.ms", SET, " +800 ")),
    (TOPIC, "t", ("preallocate", SET, "TRUE")),
    (TOPIC, "t", ("min.cleanable.dirty.ratio", SET, "0.00010")),
    (TOPIC, "t", ("compression.gzip.level", SET, "0")),
    (TOPIC, "t", ("compression.gzip.level", SET, "-1")),
    (TOPIC, "t", ("remote.storage.enable", SET, "true")),
    (GROUP, "g", ("consumer.session.timeout.ms", SET, "+50000")),
    (GROUP, "g", ("consumer.session.timeout.ms", SET, "60001")),
    (GROUP, "g", ("consumer.session.timeout.ms", SET, "44999")),
    (GROUP, "g", ("share.record.lock.duration.ms", SET, "70000")),
    (GROUP, "g", ("streams.heartbeat.interval.ms", SET, "1")),
    (GROUP, "g", ("streams.num.standby.replicas", SET, "3")),
    (
        GROUP,
        "g",
        ("streams.num.standby.replicas", SET, "2"),
        ("share.auto.offset.reset", SET, "by_duration:P1DT2H3.5S"),
    ),
    (GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:P")),
    (GROUP, "g", ("share.auto.offset.reset", SET, "by_duration:1h")),
    (GROUP, "g", ("share.isolation.level", SET, "READ_COMMITTED")),
    (GROUP, "g", ("share.isolation.level", SET, None)),
    (GROUP, "g", ("share.isolation.level", APPEND, "read_committed")),
    (GROUP, "g", ("no.such", SET, "1")),
    (GROUP, "g", ("no.such", DELETE, None)),
    (GROUP, "", ("share.isolation.level", SET, "read_committed")),
    (GROUP, "g", ("consumer.session.timeout.ms", DELETE, None)),
    (BROKER, "1", ("log.retention.ms", DELETE, None)),
    (BROKER, "", ("log.segment.bytes", DELETE, None)),
    *(
        (BROKER, name, (key, SET, value))
        for name in ("1", "")
        for key, values in (
            ("log.cleaner.threads", ("100", "5", "0", "1")),
            ("background.threads", ("3", "21", "5")),
            ("num.io.threads", ("17", "3", "16")),
            ("num.network.threads", ("13",)),
            ("num.replica.fetchers", ("0", "5", "2")),
            ("num.recovery.threads.per.data.dir", ("9",)),
            ("remote.log.reader.threads", ("4", "200", "20")),
            ("remote.log.manager.copier.thread.pool.size", ("4", "200")),
            ("remote.log.manager.expiration.thread.pool.size", ("4", "200")),
            ("remote.log.manager.follower.thread.pool.size", ("200",)),
        )
        for value in values
    ),
    (TOPIC, "t", ("min.compaction.lag.ms", SET, "2"), ("max.compaction.lag.ms", SET, "1")),
    (TOPIC, "t", ("max.compaction.lag.ms", SET, "1000")),
    (TOPIC, "t", ("min.compaction.lag.ms", SET, "1001")),
    (TOPIC, "t", ("cleanup.policy", SET, "compact,compact, delete")),
    (TOPIC, "t", ("leader.replication.throttled.replicas", SET, "0:1,0:1")),
    (BROKER, "1", ("log.cleanup.policy", SET, "compact,compact")),
]
"""IncrementalAlterConfigs: the kind and name of a resource, and the operations on it."""


class Ours:
    """Two brokers in virtual time with the settings of the real node; requests go to broker 1."""

    def __init__(self, version: str, settings: Mapping[str, str]) -> None:
        release = version.rpartition(".")[0]
        cluster = VirtualCluster(2, dict(settings), profile="kafka", semantics="kafka", release_name=release)
        self._client: MemoryClient = cluster.connect(1)

    def ask(self, request: Any, version: int) -> Any:
        return self._client.ask(request, version)


@pytest.fixture(scope="module", params=VERSIONS)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[str, StandaloneKafka, Ours]]:
    with StandaloneKafka(request.param, GIVEN | OLDER_ONLY) as real:
        yield request.param, real, Ours(request.param, real.settings)


def described(broker: StandaloneKafka | Ours, kind: int, name: str, keys: list[str] | None = None) -> dict[str, Any]:
    """Return setting name to everything in a DescribeConfigs response, except the documentation."""
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys)], True)
    [result] = broker.ask(request, 4).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    entries = {
        c.name: {
            "value": c.value,
            "source": c.config_source,
            "type": c.config_type,
            "read-only": c.read_only,
            "sensitive": c.is_sensitive,
            "synonyms": [(s.name, s.value, s.source) for s in c.synonyms],
        }
        for c in result.configs
    }
    assert len(entries) == len(result.configs)
    return {"error": result.error_code} | entries


def altered(broker: StandaloneKafka | Ours, kind: int, name: str, *operations: tuple[str, int, str | None]) -> int:
    resource = AlterConfigsResource(kind, name, [AlterableConfig(*operation) for operation in operations])
    [response] = broker.ask(IncrementalAlterConfigsRequest([resource]), 1).responses
    return int(response.error_code)


def created(broker: StandaloneKafka | Ours, name: str, **configs: str) -> dict[str, Any]:
    """Create a topic and return the settings in the response; dots in names are written as underscores."""
    own = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1, configs=own)], 10_000)
    [topic] = broker.ask(request, 7).topics
    return {"error": topic.error_code} | {
        c.name: (c.value, c.read_only, c.config_source, c.is_sensitive) for c in topic.configs or []
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_settings_tables_in_the_repository_equal_those_of_the_kafka_jars(version: str) -> None:
    assert path_of(version).read_text() == table(version)


def test_describe_configs_returns_the_same_entries_as_a_real_kafka_broker(
    pair: tuple[str, StandaloneKafka, Ours],
) -> None:
    """At start, then with settings changed for the broker, for all brokers and for a topic, and after they are deleted."""
    version, real, ours = pair
    both = (real, ours)
    first, second = (created(cluster, "t", cleanup_policy="compact , delete", retention_ms="5000") for cluster in both)
    assert first == second and len(first) > 30
    first, second = (created(cluster, "plain") for cluster in both)
    assert first == second
    assert differences(real, ours) == {}
    assert len(described(ours, BROKER, "1")) > 310
    for kind, name, *operations in CHANGES:
        theirs, own = (altered(cluster, kind, name, *operations) for cluster in both)
        assert own == theirs, (version, operations)
        differing = differences(real, ours)
        deadline = time.monotonic() + SETTLE_SECONDS
        while (
            differing and time.monotonic() < deadline
        ):  # the real broker applies a change some time after its response
            time.sleep(0.05)
            differing = differences(real, ours)
        assert differing == {}, operations


def differences(real: StandaloneKafka, ours: Ours) -> dict[Any, Any]:
    """Return (resource, setting name) to the descriptions of both brokers where they differ."""
    differing = {}
    for resource in (*RESOURCES, *WRONG_RESOURCES):
        theirs, own = (described(cluster, *resource) for cluster in (real, ours))
        for key in theirs.keys() | own.keys():
            if theirs.get(key) != own.get(key):
                differing[resource, key] = own.get(key), theirs.get(key)
    return differing


def test_describe_configs_leaves_out_unknown_keys_like_a_real_kafka_broker(
    pair: tuple[str, StandaloneKafka, Ours],
) -> None:
    _, real, ours = pair
    for keys in (["num.partitions", "no.such"], [], None, ["kafkaproto.replica.delay.ms"]):
        assert described(ours, BROKER, "1", keys) == described(real, BROKER, "1", keys)


PROPERTIES_PROGRAM = """
import java.io.*;
import java.util.*;

public class Load {
    static String hex(String text) {
        var digits = new StringBuilder();
        for (char character : text.toCharArray()) digits.append(String.format("%04x", (int) character));
        return digits.toString();
    }
    public static void main(String[] files) throws IOException {
        for (String file : files) {
            var loaded = new Properties();
            var line = new StringJoiner(" ");
            try (var in = new FileInputStream(file)) {
                loaded.load(in);
                for (var name : new TreeSet<>(loaded.stringPropertyNames())) line.add(hex(name) + "=" + hex(loaded.getProperty(name)));
            } catch (IllegalArgumentException error) {
                line = new StringJoiner(" ").add("malformed");
            }
            System.out.println(line);
        }
    }
}
"""
PIECES = [
    "a",
    "b",
    "n",
    "u",
    "=",
    ":",
    " ",
    "\t",
    "\f",
    "\\",
    "\\\\",
    "\n",
    "\r",
    "\r\n",
    "#",
    "!",
    "\\u00e9",
    "\\u12",
    "\xe9",
    "\\=",
]


def test_broker_and_java_read_the_same_keys_and_values_from_properties_files(tmp_path: Path) -> None:
    choose = random.Random(7)
    # A backslash as the last character of a file depends on the line ends before it; no file ends like that here.
    texts = ["".join(choose.choices(PIECES, k=choose.randint(1, 30))) + "\nlast=1" for _ in range(500)]
    files = [tmp_path / str(number) for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text.encode("latin-1"))
    program = tmp_path / "Load.java"
    program.write_text(PROPERTIES_PROGRAM)
    completed = subprocess.run(["java", str(program), *map(str, files)], check=True, capture_output=True, text=True)
    for text, theirs in zip(texts, completed.stdout.splitlines(), strict=True):
        assert loaded(text) == theirs, repr(text)


def loaded(text: str) -> str:
    """Return the entries as the program prints them."""
    try:
        entries = {entry.name: entry.value for entry in properties(text)}
    except ValueError:
        return "malformed"
    return " ".join(f"{in_hex(name)}={in_hex(entries[name])}" for name in sorted(entries))


def in_hex(text: str) -> str:
    return "".join(f"{ord(character):04x}" for character in text)
