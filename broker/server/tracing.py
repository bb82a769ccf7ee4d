"""Records a trace of a cluster that serves clients over sockets. The files of the trace also describe the cluster.

This module is imported only when a trace is requested.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.observe.recorder import Recorder
from kafkaproto.broker.runtime.clock import SystemClock, monotonic_ns
from kafkaproto.broker.server.trace_writer import TraceWriter, run_name

RECORDED = (
    "fetch.max.bytes",
    "log.cleanup.policy",
    "quota.window.num",
    "quota.window.size.seconds",
    "replica.selector.class",
)
"""The broker settings whose values the header of a trace contains, for the programs that check a trace against Kafka's rules."""


TOGETHER = 64
"""How many trace entries a recorder of traffic collects before it encodes them together.

Every 0.05 seconds (`WAIT_S`) it also encodes the entries collected so far, however few they are.
"""
WAIT_S = 0.05


class Recording:
    """A recording of all traffic of a cluster, until `close`. Create it in the event loop that serves the cluster.

    folder: where the files of the trace are created. If the process ends without `close`, as with `kill -9`, entries of about the last 0.15 seconds
    are lost: they are collected for up to 0.05 seconds, and then written to a file about every 0.1 seconds. Raises ConfigError if the folder cannot
    be written.
    """

    def __init__(self, cluster: Cluster, folder: str | os.PathLike[str]) -> None:
        meta = meta_of(cluster)
        self._cluster = cluster
        self._writer = TraceWriter(folder, run_name(meta["wall_ms"]), meta)
        self._recorder = Recorder(self._writer.put, TOGETHER)
        now_ms = cluster.now_ms()
        for topic in cluster.controller.image.topics.values():
            self._recorder.topic(now_ms, "existing", topic)
        for (entity, key), value in cluster.quota_store.all().items():
            self._recorder.quota_changed(entity, key, value, now_ms)
        cluster.record(self._recorder)
        self._loop = asyncio.get_running_loop()
        self._hand_over()

    def close(self) -> None:
        self._next.cancel()
        try:
            self._cluster.record(None)
        finally:
            self._writer.close()

    def _hand_over(self) -> None:
        self._next = self._loop.call_later(WAIT_S, self._hand_over)
        self._recorder.flush()


def meta_of(cluster: Cluster) -> dict[str, Any]:
    """Return the content of a trace's header: cluster, brokers, settings, API versions, and the time on the wall, monotonic and cluster clocks."""
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
        "advertised": {str(key): [api.min_version, api.max_version] for key, api in cluster.apis.items()},
        "config": cluster.config.given_at_start(),
    }


def _settings(cluster: Cluster, broker_id: int) -> dict[str, object]:
    config = cluster.nodes[broker_id].config
    return {name: config[name] for name in RECORDED}
