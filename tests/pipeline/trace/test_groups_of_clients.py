"""Groups of client libraries break no audit rule, on this broker and on a real Kafka behind the proxy, and exercise each rule of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from kafkaproto.conformance.subject import settings_of
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.groups.members import Client
from tests.support.groups.traffic import SETTINGS, produce, work
from tests.support.pipeline.judging import checked_rows, recorded_kafka
from tests.support.programs import recorded_brokers

pytestmark = [
    pytest.mark.spark,
    pytest.mark.java,
    pytest.mark.clients,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

CLASSIC_CONFLUENT, CONFLUENT = (Client("confluent-kafka", protocol, "range") for protocol in ("classic", "consumer"))
CLASSIC_JAVA, JAVA = (Client("java", protocol, "range") for protocol in ("classic", "consumer"))
AIOKAFKA, FRANZ_GO = (Client(library, "classic", "range") for library in ("aiokafka", "franz-go"))
CLASSIC = {
    "confluent": (CLASSIC_CONFLUENT, CLASSIC_CONFLUENT),
    "java": (CLASSIC_JAVA, CLASSIC_JAVA),
    "kafka-python": (Client("kafka-python", "classic", "range"), CLASSIC_CONFLUENT),
    "aiokafka": (AIOKAFKA, AIOKAFKA),
    "franz-go": (FRANZ_GO, FRANZ_GO),
}
CONSUMER = {"new confluent": (CONFLUENT, CONFLUENT), "new java": (JAVA, JAVA)}
KAFKA_WITH_KIP_848 = f"{KAFKA_VERSION} with KIP-848"
"""A Kafka 3.9.1 that serves the new protocol, and so has the group coordinator in Java; by default, it has the one in Scala."""
GROUPS = {
    "ours": CLASSIC | CONSUMER | {"both": (CLASSIC_JAVA, JAVA)},
    KAFKA_VERSION: CLASSIC,
    KAFKA_WITH_KIP_848: {"java": CLASSIC["java"], "new java": CONSUMER["new java"]},
    NEWER_VERSION: {"confluent": CLASSIC["confluent"], "both": (CLASSIC_JAVA, JAVA)} | CONSUMER,
}
"""The two kinds of members of each group, by cluster and group id."""
GROUPS_AT_ONCE = 3
"""The number of groups that work at the same time, because members mostly wait."""


@contextmanager
def recorded(subject: str, trace: Path) -> Iterator[str]:
    """Run a cluster whose traffic is recorded into `trace`, and yield its address."""
    if subject == "ours":
        with recorded_brokers("4.2", SETTINGS, trace) as bootstrap:
            yield bootstrap
        return
    settings = settings_of("default") | SETTINGS
    if subject == KAFKA_VERSION:
        del settings["group.coordinator.rebalance.protocols"]
    version = KAFKA_VERSION if subject == KAFKA_WITH_KIP_848 else subject
    with recorded_kafka(settings, version, trace) as bootstrap:
        yield bootstrap


class Checked(NamedTuple):
    """The number of checked rows of each rule by group id, and the broken rows of each rule."""

    rows: dict[str, Counter[str]]
    broken: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=GROUPS)
def subject(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def checked(spark: Any, subject: str, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    folder = tmp_path_factory.mktemp("groups")
    with recorded(subject, folder / "trace") as bootstrap:
        produce(bootstrap)
        with ThreadPoolExecutor(GROUPS_AT_ONCE) as pool:
            working = [pool.submit(work, bootstrap, group, *clients) for group, clients in GROUPS[subject].items()]
            for future in working:
                future.result()
    rows, _ = checked_rows(spark, folder)
    return Checked(
        {
            number: Counter(row["group_id"] for row in rule_rows if row.get("group_id"))
            for number, rule_rows in rows.items()
        },
        {number: [row for row in rule_rows if row["broken"]] for number, rule_rows in rows.items()},
    )


def test_consumer_group_traffic_of_client_libraries_breaks_no_audit_rule(checked: Checked) -> None:
    assert {number: rows for number, rows in checked.broken.items() if rows} == {}


def test_every_group_audit_rule_checks_at_least_3_rows_of_each_consumer_group(checked: Checked, subject: str) -> None:
    numbers = {"21", "22", "23"} | ({"21-moved"} if subject == "ours" else set())
    assert {(number, group): checked.rows[number][group] for number in numbers for group in GROUPS[subject]
            if checked.rows[number][group] < 3} == {}  # fmt: skip
