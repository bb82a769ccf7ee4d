"""Clusters for tests: `cluster()` runs one in a thread, `async_cluster()` in the running loop. Users import `kafkaproto.testing`."""

from kafkaproto.broker.group.causes import Cause, CauseKind
from kafkaproto.broker.observe.otlp import MetricSeen
from kafkaproto.broker.observe.past_transaction import PastTransaction
from kafkaproto.broker.observe.rebalances import RebalanceSeen
from kafkaproto.broker.observe.telemetry_seen import TelemetrySeen
from kafkaproto.broker.testing.asynchronous import AsyncTestCluster, async_cluster
from kafkaproto.broker.testing.group_views import GroupSeen, MemberSeen
from kafkaproto.broker.testing.options import DEFAULT
from kafkaproto.broker.testing.records import StoredRecord
from kafkaproto.broker.testing.threaded import TestCluster, cluster
from kafkaproto.broker.testing.transaction_views import ProducerSeen, TransactionSeen

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
]
