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

from broker.fetch.delayed_fetch import DelayedFetch
from broker.fetch.read import PartitionFetch, Reader
from broker.fetch.session import IncrementalContext
from broker.log.producer_state import ProducerStates
from broker.log.replica_log import ReplicaLog
from broker.metadata import controller
from broker.metadata.image import PartitionState
from broker.network.connection import Connection
from broker.replication.delayed_partitions import AwaitedAppend
from broker.replication.fetcher import Pull, ReplicaFetcher
from broker.replication.partition import Partition
from broker.replication.replica_manager import ReplicaManager
from tests.simulation.run import Broken, simulate

SEEDS = 40
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
