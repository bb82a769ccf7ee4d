"""Clusters for the client libraries, and what a library's tests look at on the broker's side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaproto.testing import TestCluster, cluster
from tests.support.clients.broker_side import RACKS, TOPICS


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    """Three brokers in racks a, b, c; topic "t" with 3 partitions on all of them."""
    with cluster(3, TOPICS, RACKS) as running:
        yield running
