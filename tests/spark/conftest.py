"""The one Spark session, with its real Kafka connector, and a fresh cluster of three brokers in racks for each test."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.testing import TestCluster, cluster
from pipeline import session

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Fails, and says what to install, when pyspark or a JDK is missing: nothing is skipped."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        pytest.fail("pyspark is missing: run `make test`, or pip install -e '.[dev,spark]'")
    scratch = session.scratch_folder()
    with tempfile.TemporaryFile("w+") as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own; what the tests warn of is theirs
        try:
            made = session.start("kafkaproto tests", scratch, log)
        except Exception:  # noqa: BLE001 - whatever it is, what the JVM said belongs to it
            log.seek(0)
            pytest.fail("Spark did not start; what it wrote last:\n" + "".join(log.readlines()[-40:]))
        yield made
        made.stop()
    shutil.rmtree(scratch, ignore_errors=True)


@pytest.fixture
def scratch() -> Iterator[Path]:
    made = session.scratch_folder()
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    config = {f"{i}.broker.rack": rack for i, rack in enumerate("abc")}
    with cluster(
        3, {"t": {"partitions": 3, "replication_factor": 3}}, {**config, "replica.selector.class": SELECTOR}
    ) as c:
        yield c
