"""A cluster of the test API as a cluster under test, for the clients of the conformance suite."""

from __future__ import annotations

from kafkaproto.conformance.foreign import Foreign
from kafkaproto.testing import TestCluster


def subject_of(cluster: TestCluster) -> Foreign:
    addresses = [address.rpartition(":") for address in cluster.bootstrap_servers]
    return Foreign([(host, int(port)) for host, _, port in addresses], "kafka", "ours")
