"""Clusters for tests, scripts and notebooks: `cluster()` runs one in a thread, `async_cluster()` in the running loop.

from kafkaproto.testing import cluster

with cluster(brokers=3, topics={"orders": 4}) as c:
    print(c.bootstrap)
"""

from kafkaproto.broker.testing import DEFAULT, AsyncTestCluster, StoredRecord, TestCluster, async_cluster, cluster

__all__ = ["DEFAULT", "AsyncTestCluster", "StoredRecord", "TestCluster", "async_cluster", "cluster"]
