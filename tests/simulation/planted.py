"""Bugs planted on purpose, to see whether the proofs notice. Each is a small change of one rule; none is left behind.

usage: python -m tests.simulation.planted      says which way catches which, and after how many seeds
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

from broker.continuity import Continuity
from broker.durable import recovery, remembered
from broker.fetch.delayed_fetch import DelayedFetch
from broker.fetch.read import PartitionFetch, Reader
from broker.fetch.session import IncrementalContext
from broker.log import compaction, retention
from broker.log.errors import StorageError
from broker.log.producer_state import ProducerStates
from broker.log.replica_log import Appended, LogState, ReplicaLog
from broker.metadata import controller
from broker.metadata.image import PartitionState
from broker.network.connection import Connection
from broker.replication.delayed_partitions import AwaitedAppend
from broker.replication.fetcher import Pull, ReplicaFetcher
from broker.replication.partition import Partition
from broker.replication.replica_manager import ReplicaManager
from kafkaproto.records.batch import HEADER_BYTES, PREFIX_BYTES, BatchHeader, Record, read_header
from tests.simulation.run import Broken, simulate

SEEDS = 60
Original = Callable[..., Any]


class Plant(NamedTuple):
    """owner.name is replaced by what `changed` makes of the original."""

    owner: Any
    name: str
    changed: Callable[[Original], Any]

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with patch.object(self.owner, self.name, self.changed(getattr(self.owner, self.name))):
            yield


def _watermark_too_high(original: Original) -> Original:
    def advance_high_watermark(self: Partition, now_ms: int) -> bool:
        moved = original(self, now_ms)
        self.log.high_watermark = min(self.log.high_watermark + bool(moved), self.log.log_end_offset)
        return bool(moved)

    return advance_high_watermark


def _epoch_not_bumped(_: Original) -> Original:
    def led_by(state: PartitionState, leader: int) -> PartitionState:
        return replace(state, leader=leader, partition_epoch=state.partition_epoch + 1)

    return led_by


def _told_before_it_is_sent(original: Original) -> Original:
    def included(self: IncrementalContext[Any, Any], results: Sequence[Any]) -> Any:
        news = original(self, results)
        for key, result in news:
            self.session.partitions[key].told(result)
        return news

    return included


def _nothing(_: Original) -> Original:
    return lambda *_: None


def _duplicate_taken(original: Original) -> Original:
    def check(self: ProducerStates, header: Any) -> None:
        original(self, header)

    return check


def _limit_one_batch_late(original: Original) -> Original:
    def read(self: ReplicaLog, fetch_offset: int, limit_bytes: int, bound_offset: int, at_least_one: bool) -> Any:
        return original(self, fetch_offset, limit_bytes + 100, bound_offset, at_least_one)

    return read


def _start_not_enforced(original: Original) -> Original:
    def out_of_bounds(self: Reader, params: Any, fetch: PartitionFetch, partition: Partition, result: Any) -> Any:
        fetch.offset = max(fetch.offset, partition.log.log_start_offset)
        return original(self, params, fetch, partition, result)

    return out_of_bounds


def _preferred_outside_the_isr(original: Original) -> Original:
    def replica_views(self: ReplicaManager, partition: Partition, *more: Any) -> Any:
        isr, partition.isr = partition.isr, frozenset(partition.replicas)
        try:
            return original(self, partition, *more)
        finally:
            partition.isr = isr

    return replica_views


def _acknowledged_before_it_is_there(_: Original) -> Original:
    def acknowledge(self: ReplicaFetcher, pull: Pull, now_ms: int) -> None:
        log = pull.leader.log
        pull.leader.follower_fetched(self.follower_id, log.log_end_offset, log.log_start_offset, now_ms)

    return acknowledge


def _answered_before_replicated(_: Original) -> Original:
    return lambda self: True


def _not_muted(original: Original) -> Original:
    def answer(self: Connection, buffers: Any, throttle_ms: int, close: bool, now_ms: int) -> None:
        original(self, buffers, 0, close, now_ms)

    return answer


def _batch_skipped(original: Original) -> Original:
    def replicate_from(self: ReplicaLog, leader: ReplicaLog, *limits: Any, **more: Any) -> int:
        if (
            self.log_end_offset % 7 == 3
            and leader._newest is not None
            and leader._newest.base_offset > self.log_end_offset
        ):
            self._take(leader._newest)
            return 1
        return int(original(self, leader, *limits, **more))

    return replicate_from


def _producers_forgotten(original: Original) -> Original:
    def restore(self: ReplicaLog, state: LogState) -> None:
        original(self, state._replace(producers={}))

    return restore


def _torn_tail_kept(_: Original) -> Original:
    def header(self: recovery._Walk, view: memoryview, at: int) -> BatchHeader | None:
        if at + HEADER_BYTES > len(view):
            return None
        found = read_header(view, at)
        return found._replace(batch_length=min(found.batch_length, len(view) - at - PREFIX_BYTES))

    return header


def _watermark_beyond_the_end(original: Original) -> Original:
    def restore(self: ReplicaLog, state: LogState) -> None:
        original(self, state)
        self.high_watermark += 1

    return restore


def _last_value_dropped(_: Original) -> Original:
    def is_last(self: compaction._Cleaner, record: Record) -> bool:
        return record.key is not None and record.offset > self._latest.get(record.key, -1)

    return is_last


def _tombstone_dropped_at_once(original: Original) -> Original:
    def kept(self: compaction._Cleaner, batch: bytes, header: BatchHeader) -> bytes | None:
        delay_ms, self._delete_retention_ms = self._delete_retention_ms, 0
        try:
            return original(self, batch, header)
        finally:
            self._delete_retention_ms = delay_ms

    return kept


def _refused_write_acknowledged(original: Original) -> Original:
    def append(self: ReplicaLog, batch: memoryview, header: BatchHeader, *more: int) -> Appended:
        try:
            return original(self, batch, header, *more)
        except StorageError:
            return Appended(self.log_end_offset, self.log_end_offset + header.last_offset_delta, -1, False)

    return append


def _noted_after_it_happened(original: Original) -> Original:
    def raise_log_start(self: ReplicaLog, offset: int) -> None:
        keeper, self.keeper = self.keeper, None
        try:
            original(self, offset)
        finally:
            self.keeper = keeper

    return raise_log_start


def _epochs_not_read(original: Original) -> Original:
    def partition(told: Sequence[Any]) -> PartitionState:
        return replace(original(told), leader_epoch=0)

    return partition


def _expires_too_early(original: Original) -> Original:
    def expire(log: ReplicaLog, limits: retention.RetentionLimits, now_ms: int) -> bool:
        early = limits.age_ms // 2 if limits.age_ms > 0 else limits.age_ms
        return bool(original(log, limits._replace(age_ms=early), now_ms))

    return expire


PLANTED = {
    "high watermark one too high": Plant(Partition, "advance_high_watermark", _watermark_too_high),
    "leader epoch not bumped by an election": Plant(controller, "_led_by", _epoch_not_bumped),
    "session marked before a throttled answer": Plant(IncrementalContext, "included", _told_before_it_is_sent),
    "follower does not truncate": Plant(ReplicaManager, "_truncate_to_leader", _nothing),
    "follower appends the newest batch before older ones": Plant(ReplicaLog, "replicate_from", _batch_skipped),
    "in-sync replicas never shrink": Plant(Partition, "shrink_isr", _nothing),
    "duplicate sequence appended again": Plant(ProducerStates, "check", _duplicate_taken),
    "size limit late by a batch": Plant(ReplicaLog, "read", _limit_one_batch_late),
    "parked fetch not woken": Plant(DelayedFetch, "check", _nothing),
    "log start not enforced": Plant(Reader, "_out_of_bounds", _start_not_enforced),
    "preferred replica outside the ISR": Plant(ReplicaManager, "_replica_views", _preferred_outside_the_isr),
    "acks=all answered before it is replicated": Plant(AwaitedAppend, "has_come", _answered_before_replicated),
    "follower acknowledges what it does not have": Plant(
        ReplicaFetcher, "_acknowledge", _acknowledged_before_it_is_there
    ),
    "throttled connection not muted": Plant(Connection, "answer", _not_muted),
    "recovery forgets producers": Plant(ReplicaLog, "restore", _producers_forgotten),
    "recovery keeps a torn tail": Plant(recovery._Walk, "_header", _torn_tail_kept),
    "high watermark recovered above the log end": Plant(ReplicaLog, "restore", _watermark_beyond_the_end),
    "recovery forgets leader epochs": Plant(remembered, "_partition", _epochs_not_read),
    "log start moved without a fact": Plant(ReplicaLog, "raise_log_start", _noted_after_it_happened),
    "commit not remembered": Plant(Continuity, "committed", _nothing),
    "write that the disk refused acknowledged": Plant(ReplicaLog, "append", _refused_write_acknowledged),
    "compaction drops the last value of a key": Plant(compaction._Cleaner, "_is_last", _last_value_dropped),
    "compaction drops a tombstone at once": Plant(compaction._Cleaner, "_kept", _tombstone_dropped_at_once),
    "records expire too early": Plant(retention, "expire", _expires_too_early),
}


class Caught(NamedTuple):
    """way: which proof; after: how many seeds it took; said: what it complained about."""

    way: str
    after: int
    said: str


def caught_by_simulation(plant: Plant, seeds: int = SEEDS) -> Caught | None:
    with plant.in_place():
        for seed in range(seeds):
            try:
                simulate(seed)
            except Broken as broken:
                return Caught("simulation", seed + 1, str(broken).splitlines()[-2])
    return None


def main() -> int:
    missed = 0
    for name, plant in PLANTED.items():
        caught = caught_by_simulation(plant)
        missed += caught is None
        told = "not caught" if caught is None else f"{caught.way}, seed {caught.after}: {caught.said[:150]}"
        sys.stdout.write(f"{name}: {told}\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
