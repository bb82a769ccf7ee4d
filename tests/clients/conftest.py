"""Clusters for the tests of client libraries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaproto.testing import TestCluster, cluster
from tests.support.clients.broker_side import RACKS, TOPICS


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    """Yield three brokers in racks a, b and c with topic "t": each of its 3 partitions has a replica on each broker."""
    with cluster(3, TOPICS, RACKS) as running:
        yield running
