"""Transactions of client libraries break no audit rule, on this broker and on a real Kafka behind the proxy, and exercise those of transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from kafkaproto.conformance.subject import settings_of
from kafkaproto.pipeline.trace.audit import producer_epochs, transactions
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.pipeline.judging import checked_rows, recorded_kafka
from tests.support.pipeline.transactional_clients import CLIENTS, PARTITIONS
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

OURS = {"ours 3.9": "3.9", "ours 4.2": "4.2"}
"""The release of each of our clusters."""
REAL = (KAFKA_VERSION, NEWER_VERSION)
ONLY_OURS = {"25-moved"}
"""Rules about what only our broker records."""


@contextmanager
def recorded(subject: str, trace: Path) -> Iterator[str]:
    """Run a cluster whose traffic is recorded into `trace`, and yield its address."""
    if subject in OURS:
        with recorded_brokers(OURS[subject], {}, trace) as bootstrap:
            yield bootstrap
        return
    with recorded_kafka(settings_of("default"), subject, trace) as bootstrap:
        yield bootstrap


class Checked(NamedTuple):
    """The number of checked rows of each rule by client id, and the broken rows of each rule."""

    rows: dict[str, Counter[str | None]]
    broken: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=[*OURS, *REAL])
def subject(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def checked(spark: Any, subject: str, tmp_path_factory: pytest.TempPathFactory) -> Checked:
    from kafka.admin import KafkaAdminClient, NewTopic

    folder = tmp_path_factory.mktemp("transactions")
    with recorded(subject, folder / "trace") as bootstrap:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        admin.create_topics([NewTopic(f"of-{name}", PARTITIONS, 3) for name in CLIENTS])
        admin.close()
        for name, client in CLIENTS.items():
            client(bootstrap, f"of-{name}", name)
    rows, clients = checked_rows(spark, folder)
    return Checked(
        {
            number: Counter(clients.get(row["seq"]) for row in rule_rows if row["broken"] is not None)
            for number, rule_rows in rows.items()
        },
        {number: [row for row in rule_rows if row["broken"]] for number, rule_rows in rows.items()},
    )


def test_transactional_traffic_of_client_libraries_breaks_no_audit_rule(checked: Checked) -> None:
    assert {number: rows for number, rows in checked.broken.items() if rows} == {}


def test_every_transaction_audit_rule_checks_at_least_1_row_of_each_client_library(
    checked: Checked, subject: str
) -> None:
    numbers = {rule.number for rule in (*transactions.RULES, *producer_epochs.RULES)} - ONLY_OURS
    missing = {(number, name) for number in numbers for name in CLIENTS if not checked.rows[number][name]}
    assert missing == set(), checked.rows
    if subject in OURS:
        assert all(checked.rows[number].total() for number in ONLY_OURS)
