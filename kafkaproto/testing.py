"""Clusters for tests, scripts and notebooks: `cluster()` runs one in a thread, `async_cluster()` in the running loop.

from kafkaproto.testing import cluster

with cluster(brokers=3, topics={"orders": 4}) as c:
    print(c.bootstrap)
"""

from typing import TYPE_CHECKING, Any

from kafkaproto.broker.testing import (
    DEFAULT,
    AsyncTestCluster,
    Cause,
    CauseKind,
    GroupSeen,
    MemberSeen,
    MetricSeen,
    PastTransaction,
    ProducerSeen,
    RebalanceSeen,
    StoredRecord,
    TelemetrySeen,
    TestCluster,
    TransactionSeen,
    async_cluster,
    cluster,
)

if TYPE_CHECKING:
    from kafkaproto.pytest_plugin import cluster_fixture

__all__ = [
    "DEFAULT",
    "AsyncTestCluster",
    "Cause",
    "CauseKind",
    "GroupSeen",
    "MemberSeen",
    "MetricSeen",
    "PastTransaction",
    "ProducerSeen",
    "RebalanceSeen",
    "StoredRecord",
    "TelemetrySeen",
    "TestCluster",
    "TransactionSeen",
    "async_cluster",
    "cluster",
    "cluster_fixture",
]


def __getattr__(name: str) -> Any:
    """Import `cluster_fixture` on first use, so that only tests which use it need pytest.

    Raises AttributeError for any other name.
    """
    if name != "cluster_fixture":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kafkaproto.pytest_plugin import cluster_fixture

    return cluster_fixture
