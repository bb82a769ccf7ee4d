"""Clusters for tests, scripts and notebooks: `cluster()` runs one in a thread, `async_cluster()` in the running loop.

from kafkaproto.broker.testing import cluster

with cluster(brokers=3, topics={"orders": 4}) as c:
    print(c.bootstrap)
"""

from kafkaproto.broker.testing.asynchronous import AsyncTestCluster, async_cluster
from kafkaproto.broker.testing.handle import DEFAULT
from kafkaproto.broker.testing.records import StoredRecord
from kafkaproto.broker.testing.threaded import TestCluster, cluster

__all__ = ["DEFAULT", "AsyncTestCluster", "StoredRecord", "TestCluster", "async_cluster", "cluster"]
