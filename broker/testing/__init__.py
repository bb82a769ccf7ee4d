"""Clusters for tests, scripts and notebooks: `cluster()` runs one in a thread, `async_cluster()` in the running loop.

from broker.testing import cluster

with cluster(brokers=3, topics={"orders": 4}) as c:
    print(c.bootstrap)
"""

from broker.testing.asynchronous import AsyncTestCluster, async_cluster
from broker.testing.handle import DEFAULT
from broker.testing.records import StoredRecord
from broker.testing.threaded import TestCluster, cluster

__all__ = ["DEFAULT", "AsyncTestCluster", "StoredRecord", "TestCluster", "async_cluster", "cluster"]
