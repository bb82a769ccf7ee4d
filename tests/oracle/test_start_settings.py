"""Settings with which a broker does not start: this broker refuses the same ones as Kafka's class `KafkaConfig`."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, kafka_jars
from kafkaproto.broker.config.listeners import listeners_of
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.testing.memory import VirtualCluster

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

PROGRAM = """
import java.nio.file.*;
import java.util.*;

public class Starts {
    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            var settings = new Properties();
            for (String entry : line.split("\\t")) settings.put(entry.split("=", 2)[0], entry.split("=", 2)[1]);
            try {
                kafka.server.KafkaConfig.fromProps(settings, false);
                System.out.println("starts");
            } catch (Exception error) {
                System.out.println("refuses");
            }
        }
    }
}
"""
BASE = {
    "process.roles": "broker",
    "node.id": "1",
    "controller.quorum.voters": "2@127.0.0.1:1",
    "controller.listener.names": "C",
    "listeners": "PLAINTEXT://127.0.0.1:2",
}
MAP, INTER_BROKER, EARLY = "listener.security.protocol.map", "inter.broker.listener.name", "early.start.listeners"
ADVERTISED, ASSIGNORS, SHARE_ASSIGNORS = "advertised.listeners", "group.consumer.assignors", "group.share.assignors"
CLASSES = "org.apache.kafka.coordinator.group.assignor."
MAPPED = {MAP: "PLAINTEXT:PLAINTEXT,FOO:PLAINTEXT,C:PLAINTEXT"}
TWO = {"listeners": "FOO://127.0.0.1:2,PLAINTEXT://127.0.0.1:3", **MAPPED}
DIRECTORIES = ["", " ", ",", " , ", "/a", "/a,", ",/a", "/a,,/b", "/a,/a", " /a , /b "]
CAN_BE_EMPTY = (
    *("config.providers", "metric.reporters", "log.cleanup.policy", "controller.quorum.bootstrap.servers"),
    *("kafka.metrics.reporters", "sasl.enabled.mechanisms", "sasl.kerberos.principal.to.local.rules"),
    *("sasl.oauthbearer.expected.audience", "ssl.cipher.suites", "ssl.enabled.protocols"),
)
VALUES = {
    "compression.type": [""],
    INTER_BROKER: ["", "FOO", "plaintext", "PLAINTEXT", "SSL", "C", "PLAINTEXT "],
    "security.inter.broker.protocol": ["", "PLAINTEXT", "plaintext"],
    EARLY: ["", "FOO", "PLAINTEXT", "plaintext", "C", "PLAINTEXT,FOO", "PLAINTEXT,", ",", " PLAINTEXT , PLAINTEXT"],
    "listeners": ["", ",", "PLAINTEXT://127.0.0.1:2,", "plaintext://127.0.0.1:2", "C://127.0.0.1:2"],
    ADVERTISED: ["", ",", "PLAINTEXT://h:1,", "PLAINTEXT://h:1", "PLAINTEXT://:1", "FOO://h:1", "C://h:1", "SSL://h:1"],
    MAP: [
        "",
        ",",
        *(
            f"PLAINTEXT:PLAINTEXT,C:PLAINTEXT{end}"
            for end in (*",", ",,", ", ", ",X:", ",:SSL", ",X:TLS", ",X:SSL", ",X:ssl", ",X", ",A:B:SSL", ",C:SSL")
        ),
        "PLAINTEXT:PLAINTEXT,,C:PLAINTEXT",
        ",PLAINTEXT:PLAINTEXT,C:PLAINTEXT",
        "C:PLAINTEXT",
        "plaintext: plaintext , c:PLAINTEXT",
    ],
    "log.dirs": DIRECTORIES,
    "log.dir": DIRECTORIES,
    ASSIGNORS: [
        *("", " ", ",", "range", "uniform", "uniform,range", "range,", "RANGE", "Uniform", "foo", "simple"),
        *(
            f"{CLASSES}{name}"
            for name in ("RangeAssignor", "UniformAssignor", "SimpleAssignor", "rangeAssignor", "range")
        ),
        f"{CLASSES}UniformAssignor , {CLASSES}RangeAssignor",
        f"{CLASSES}UniformAssignor,{CLASSES}UniformAssignor",
        f"{CLASSES}UniformAssignor,range",
        f"{CLASSES}UniformAssignor,uniform",
        f"{CLASSES}UniformAssignor,",
        "uniform,uniform",
        "java.lang.String",
    ],
    SHARE_ASSIGNORS: [
        *("", ",", "simple", "Simple", "simple,simple", "foo", "range", "simple,foo"),
        *(f"{CLASSES}{name}" for name in ("SimpleAssignor", "RangeAssignor", "simple")),
        f"simple,{CLASSES}SimpleAssignor",
    ],
    "group.coordinator.rebalance.protocols": ["", ",", "classic", "classic,", "consumer", "classic,streams", "share"],
    "offsets.topic.compression.codec": ["-1", "0", "4", "5"],
    "replica.lag.time.max.ms": ["0", "499", "500"],
    "offsets.topic.replication.factor": ["-1", "0", "1", "32767"],
    "offsets.commit.required.acks": ["-2", "-1", "2", "3", "4", "32768"],
    "share.coordinator.state.topic.replication.factor": ["0", "1"],
    "group.share.max.groups": ["0", "1", "100", "101"],
    **{name: [""] for name in CAN_BE_EMPTY},
}
"""Values of a setting, each in a case of its own."""
PAIRS: list[dict[str, str]] = [
    {},
    MAPPED | {INTER_BROKER: "FOO"},
    MAPPED | {INTER_BROKER: "FOO", "security.inter.broker.protocol": "PLAINTEXT"},
    {INTER_BROKER: "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
    {"offsets.commit.required.acks": "2", "offsets.topic.replication.factor": "1"},
    {"log.dirs": "", "log.dir": "/a"},
    {"log.dirs": "/a", "log.dir": ""},
    {"listeners": "FOO://127.0.0.1:2", MAP: "PLAINTEXT:PLAINTEXT,C:PLAINTEXT", INTER_BROKER: "FOO"},
    {ASSIGNORS: "range", "group.coordinator.rebalance.protocols": "classic,consumer"},
    {EARLY: "PLAINTEXT", "listeners": "plaintext://127.0.0.1:2"},
    TWO | {EARLY: "FOO", ADVERTISED: "PLAINTEXT://h:1"},
    {"listeners": "SSL://127.0.0.1:2"},
    {"listeners": "PLAINTEXT://127.0.0.1:2,PLAINTEXT://127.0.0.1:3"},
]
AMOUNTS = {
    "session.timeout.ms": (None, 4_000, 5_000, 45_000, 60_000, 70_000),
    "heartbeat.interval.ms": (None, 4_000, 5_000, 15_000, 45_000),
    "record.lock.duration.ms": (None, 1_000, 15_000, 30_000, 60_000, 60_001),
}
OTHER_AMOUNTS = {
    "group.share.max.size": (10, 200, 1_000),
    "group.share.max.share.sessions": (10, 199, 200, 2_000),
    "group.streams.num.standby.replicas": (0, 2, 3),
    "group.streams.max.standby.replicas": (0, 1, 3),
}


def random_groups(choose: random.Random) -> dict[str, str]:
    """Return timeouts and other limits of groups of one kind."""
    kind = choose.choice(("consumer", "share", "streams"))
    case = {}
    for name, amounts in AMOUNTS.items():
        for bound in ("", "min.", "max."):
            amount = choose.choice(amounts) if choose.random() < 0.5 else None
            if amount is not None and (kind == "share" or "lock" not in name):
                case[f"group.{kind}.{bound}{name}"] = str(amount)
    others = {name: str(choose.choice(amounts)) for name, amounts in OTHER_AMOUNTS.items() if f".{kind}." in name}
    return case | (others if choose.random() < 0.5 else {})


def random_listeners(choose: random.Random) -> dict[str, str]:
    """Return two or three listeners with a map, some of whose names are missing elsewhere."""
    names = ["PLAINTEXT", "FOO", "BAR"]
    listeners, advertised, mapped = (choose.sample(names, choose.choice((1, 2, 3, 3))) for _ in range(3))
    case = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for port, name in enumerate(listeners, 2)),
        MAP: ",".join(f"{name}:PLAINTEXT" for name in (*mapped, "C")),
        INTER_BROKER: choose.choice((*names, "foo")),
    }
    if choose.random() < 0.5:
        case[ADVERTISED] = ",".join(f"{name}://h:{port}" for port, name in enumerate(advertised, 2))
    if choose.random() < 0.5:
        case[EARLY] = ",".join(choose.sample(names, choose.choice((1, 2))))
    return case


def cases() -> list[dict[str, str]]:
    choose = random.Random(11)
    single = [{name: value} for name, values in VALUES.items() for value in values]
    groups, listeners = ([make(choose) for _ in range(150)] for make in (random_groups, random_listeners))
    return [*single, *PAIRS, *groups, *listeners]


DIFFERENCES: list[tuple[dict[str, str], str, str]] = [
    ({"listeners": "FOO://127.0.0.1:2"}, "starts", "both"),
    ({"listeners": "FOO://127.0.0.1:2", **MAPPED}, "starts", "both"),
    ({MAP: "PLAINTEXT:PLAINTEXT"}, "starts", "both"),
    ({"listeners": "PLAINTEXT://127.0.0.1:2,C://127.0.0.1:3"}, "starts", "both"),
    ({"process.roles": ""}, "starts", KAFKA_VERSION),
    ({"controller.listener.names": ""}, "starts", KAFKA_VERSION),
    ({ASSIGNORS: "", "group.coordinator.rebalance.protocols": "classic,consumer"}, "refuses", KAFKA_VERSION),
    ({"num.partitions": "10001"}, "refuses", "both"),
    ({"offsets.topic.num.partitions": "10001"}, "refuses", "both"),
    ({"default.replication.factor": "-1"}, "refuses", "both"),
]
"""Settings, what this broker does, and the Kafka that does the opposite. The pages of rules CF-18 and GN-36 and of the settings name them."""


class Decisions:
    """What Kafka of one version does with the settings of every case: "starts" or "refuses"."""

    def __init__(self, version: str, folder: Path) -> None:
        self.version = version
        self.release = version.rpartition(".")[0]
        self.cases = cases()
        self.differences = [(case, ours) for case, ours, only in DIFFERENCES if only in ("both", version)]
        program, file = folder / "Starts.java", folder / "cases"
        program.write_text(PROGRAM)
        every = [*self.cases, *(case for case, _ in self.differences)]
        lines = ["\t".join(f"{name}={value}" for name, value in (BASE | case).items()) for case in every]
        file.write_text("".join(f"{line}\n" for line in lines))
        command = ["java", "-cp", f"{kafka_jars(version)}/*", str(program), str(file)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.of_kafka = [line for line in output.splitlines() if line in ("starts", "refuses")]
        assert len(self.of_kafka) == len(every)


@pytest.fixture(scope="module", params=[KAFKA_VERSION, NEWER_VERSION])
def decisions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Decisions:
    return Decisions(request.param, tmp_path_factory.mktemp("starts"))


def decision(release: str, case: Mapping[str, str]) -> str:
    try:
        cluster = VirtualCluster(1, BASE | case, profile="kafka", release_name=release)
        [node] = cluster.state.nodes
        listeners_of(node.config, "127.0.0.1", 9092)
        cluster.state.close()
    except ConfigError:
        return "refuses"
    return "starts"


@pytest.mark.rule("CF-18", "CF-23", "GN-36", "GN-67")
def test_broker_refuses_to_start_with_exactly_the_settings_that_kafka_refuses(decisions: Decisions) -> None:
    ours = [decision(decisions.release, case) for case in decisions.cases]
    pairs = zip(decisions.cases, ours, decisions.of_kafka, strict=False)
    assert [(case, own) for case, own, of_kafka in pairs if own != of_kafka] == []
    assert min(ours.count("starts"), ours.count("refuses")) > 100


@pytest.mark.rule("CF-18", "GN-36")
def test_broker_differs_from_kafka_in_exactly_the_documented_start_settings(decisions: Decisions) -> None:
    of_kafka = decisions.of_kafka[len(decisions.cases) :]
    for (case, ours), theirs in zip(decisions.differences, of_kafka, strict=True):
        assert (decision(decisions.release, case), theirs) == (
            ours,
            {"starts": "refuses", "refuses": "starts"}[ours],
        ), case
