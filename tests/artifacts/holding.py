"""The committed artifacts, each a tar file to unpack before use, and the contents of a data directory as clients see them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.describe_client_quotas import DescribeClientQuotasRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaproto.records.entries import entries
from tests.golden.fitting import fitted
from tests.golden.world import fetch

FOLDER = Path(__file__).parent
BROKERS = 3
START_MS = 1_700_000_000_000
LATER_MS = START_MS + 3_600_000
GROUPS = ("committed", "with a member")


def pack(name: str, folder: Path) -> None:
    """Write the files and folders below `folder` as an artifact, without owners and times."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, str(path.relative_to(folder)), recursive=False, filter=_without_owner)
    (FOLDER / f"{name}.tar.gz").write_bytes(gzip.compress(out.getvalue(), mtime=0))


def _without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mtime = 0
    info.mode = 0o755 if info.isdir() else 0o644
    return info


def unpack(name: str, target: Path) -> Path:
    """Copy an artifact into the folder `target`."""
    with tarfile.open(FOLDER / f"{name}.tar.gz") as tar:
        tar.extractall(target, filter="data")
    return target


def expected(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text())


def expect(name: str, facts: Any) -> None:
    (FOLDER / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


def recovered(folder: Path, now_ms: int = LATER_MS) -> VirtualCluster:
    """Start a cluster in virtual time on an existing data directory."""
    return VirtualCluster(BROKERS, clock=ManualClock(now_ms), data_dir=folder, seed=1)


def ask(cluster: VirtualCluster, broker_id: int, request: Any, version: int) -> Any:
    """Return the response, which may take up to a second of virtual time."""
    client = cluster.connect(broker_id)
    client.send(fitted(request, version), version)
    if not client.answers:
        cluster.advance(1000)
    return client.latest


def contents(cluster: VirtualCluster) -> dict[str, Any]:
    """Return topics with their records, offsets and epochs, committed offsets, quotas and settings, as JSON values."""
    topics = ask(cluster, 0, MetadataRequest(topics=None), 12)
    names = sorted(t.name for t in topics.topics if not t.is_internal)
    summary = {
        "cluster": topics.cluster_id,
        "topics": {
            t.name: _topic(cluster, t) for t in sorted(topics.topics, key=lambda t: t.name) if not t.is_internal
        },
        "groups": {group: _committed(cluster, group, names) for group in GROUPS},
        "quotas": _quotas(cluster),
        "brokers": {name: _settings(cluster, 4, name) for name in ("", *map(str, range(BROKERS)))},
    }
    return json.loads(json.dumps(summary))


def _topic(cluster: VirtualCluster, topic: Any) -> dict[str, Any]:
    return {
        "id": topic.topic_id.hex(),
        "settings": _settings(cluster, 2, topic.name),
        "partitions": {
            p.partition_index: {
                "leader": p.leader_id,
                "leader_epoch": p.leader_epoch,
                "replicas": p.replica_nodes,
                "in_sync": sorted(p.isr_nodes),
                **_log(cluster, topic.name, p.partition_index, p.leader_id),
            }
            for p in sorted(topic.partitions, key=lambda p: p.partition_index)
        },
    }


def _log(cluster: VirtualCluster, topic: str, index: int, leader: int) -> dict[str, Any]:
    """Return everything that the leader has from the start of its log."""
    [start] = ask(cluster, leader, fetch((topic, index, 0)), 11).responses[0].partitions
    position, records = start.log_start_offset, []
    while position < start.high_watermark:
        [data] = ask(cluster, leader, fetch((topic, index, position)), 11).responses[0].partitions
        new_records = [r for r in entries(bytes(data.records)) if r.offset >= position]
        if not new_records:
            break
        records += [
            [
                r.offset,
                r.timestamp,
                *(None if b is None else b.decode("latin-1") for b in (r.key, r.value)),
                len(r.headers),
            ]
            for r in new_records
        ]
        position = new_records[-1].offset + 1
    epochs = [
        ask(
            cluster,
            leader,
            OffsetForLeaderEpochRequest(
                -2, [OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(index, -1, epoch)])]
            ),
            3,
        )
        .topics[0]
        .partitions[0]
        .end_offset
        for epoch in range(2)
    ]
    return {
        "log_start": start.log_start_offset,
        "high_watermark": start.high_watermark,
        "epoch_ends": epochs,
        "records": records,
    }


def _committed(cluster: VirtualCluster, group: str, topics: list[str]) -> list[list[Any]]:
    requested_topics = [OffsetFetchRequestTopics(name, partition_indexes=[0, 1]) for name in topics]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=requested_topics)])
    coordinator = cluster.state.coordinator_of(group)
    cluster.run()
    [committed_group] = ask(cluster, coordinator, request, 8).groups
    return sorted(
        [t.name, p.partition_index, p.committed_offset, p.metadata]
        for t in committed_group.topics
        for p in t.partitions
        if p.committed_offset >= 0
    )


def _quotas(cluster: VirtualCluster) -> list[list[Any]]:
    quota_entries = ask(cluster, 0, DescribeClientQuotasRequest([], False), 1).entries or ()
    quotas = [
        # The order of the components has changed since the data was written.
        [
            sorted(
                ([e.entity_type, e.entity_name] for e in q.entity), reverse=True, key=lambda component: component[0]
            ),
            {v.key: v.value for v in q.values},
        ]
        for q in quota_entries
    ]
    return sorted(quotas, key=str)


def _settings(cluster: VirtualCluster, kind: int, name: str) -> dict[str, str | None]:
    """Return the dynamic settings of a topic or of a broker."""
    broker_id = int(name) if kind == 4 and name else 0
    config_entries = ask(cluster, broker_id, DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)]), 4)
    dynamic = {2: (1,), 4: (2, 3)}[kind]
    return {c.name: c.value for c in config_entries.results[0].configs if c.config_source in dynamic}
