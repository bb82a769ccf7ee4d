"""A trace of a served cluster: who records what, and what the files say of it. Imported only where somebody wants one."""

from __future__ import annotations

import os
from typing import Any

from broker.clock import SystemClock, monotonic_ns
from broker.cluster import Cluster
from broker.server.trace_writer import TraceWriter, run_name
from broker.trace import Recorder

RECORDED = (
    "fetch.max.bytes",
    "log.cleanup.policy",
    "quota.window.num",
    "quota.window.size.seconds",
    "replica.selector.class",
)
"""Settings that tell whoever reads a trace what the broker had to do."""


def begin_trace(cluster: Cluster, folder: str | os.PathLike[str]) -> TraceWriter:
    """Record a cluster's traffic from now on. Raises ConfigError when the folder cannot be written to."""
    meta = meta_of(cluster)
    writer = TraceWriter(folder, run_name(meta["wall_ms"]), meta)
    recorder = Recorder(writer.put)
    now_ms = cluster.now_ms()
    for topic in cluster.controller.image.topics.values():
        recorder.topic(now_ms, "there", topic)
    for (entity, key), value in cluster.quota_store.all().items():
        recorder.quota(now_ms, entity, key, value)
    cluster.record(recorder)
    return writer


def meta_of(cluster: Cluster) -> dict[str, Any]:
    """What the header of a trace tells of who is recorded."""
    brokers = cluster.controller.image.brokers.values()
    return {
        "recorder": "kafkaproto broker",
        "cluster_id": cluster.controller.image.cluster_id,
        "release": cluster.release_name,
        "semantics": cluster.semantics,
        "wall_ms": SystemClock().now_ms(),
        "at_ns": monotonic_ns(),
        "clock_ms": cluster.now_ms(),
        "brokers": [
            {"id": b.broker_id, "rack": b.rack, "listeners": b.listeners, "settings": _settings(cluster, b.broker_id)}
            for b in brokers
        ],
        "advertised": {str(key): [one.min_version, one.max_version] for key, one in cluster.apis.items()},
        "config": cluster.config.given(),
    }


def _settings(cluster: Cluster, broker_id: int) -> dict[str, object]:
    config = cluster.nodes[broker_id].config
    return {name: config[name] for name in RECORDED}
