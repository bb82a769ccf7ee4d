"""A fresh cluster of three brokers in racks for each test, and a folder for Spark's files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaproto.pipeline import session
from kafkaproto.testing import TestCluster, cluster

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


@pytest.fixture
def scratch() -> Iterator[Path]:
    folder = session.scratch_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    config = {f"{i}.broker.rack": rack for i, rack in enumerate("abc")}
    with cluster(
        3, {"t": {"partitions": 3, "replication_factor": 3}}, {**config, "replica.selector.class": SELECTOR}
    ) as c:
        yield c
