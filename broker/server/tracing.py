"""A trace of a served cluster: who records what, and what the files say of it. Imported only where somebody wants one."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from broker.clock import SystemClock, monotonic_ns
from broker.cluster import Cluster
from broker.server.trace_writer import TraceWriter
from broker.trace import Recorder


def begin_trace(cluster: Cluster, folder: str | os.PathLike[str]) -> TraceWriter:
    """Record a cluster's traffic from now on. Raises ConfigError when the folder cannot be written to."""
    brokers = cluster.controller.image.brokers.values()
    wall_ms = SystemClock().now_ms()
    writer = TraceWriter(
        folder,
        f"{datetime.fromtimestamp(wall_ms / 1000, UTC):%Y%m%dT%H%M%S}-{os.getpid()}",
        {
            "recorder": "kafkaproto broker",
            "cluster_id": cluster.controller.image.cluster_id,
            "release": cluster.release_name,
            "semantics": cluster.semantics,
            "wall_ms": wall_ms,
            "at_ns": monotonic_ns(),
            "clock_ms": cluster.now_ms(),
            "brokers": [{"id": b.broker_id, "rack": b.rack, "listeners": b.listeners} for b in brokers],
            "advertised": {str(key): [one.min_version, one.max_version] for key, one in cluster.apis.items()},
            "config": cluster.config.given(),
        },
    )
    cluster.record(Recorder(writer.put))
    return writer
