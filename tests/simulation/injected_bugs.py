"""Inject bugs into the broker, one at a time, and print which of them the simulation finds.

Each bug breaks one rule of the broker. For each bug, the program prints how many seeds the
simulation needed to find it, or that no seed found it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from kafkaproto.broker.fetch.fetch_condition import FetchCondition
from kafkaproto.broker.fetch.read import PartitionFetch, Reader
from kafkaproto.broker.fetch.session import IncrementalContext
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.log import compaction, retention
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.producer_state import ProducerStates
from kafkaproto.broker.log.replica_log import Appended, LogState, ReplicaLog
from kafkaproto.broker.metadata import controller
from kafkaproto.broker.metadata.image import PartitionState
from kafkaproto.broker.network.connection import Connection
from kafkaproto.broker.node import Node
from kafkaproto.broker.persistence import records as records
from kafkaproto.broker.persistence import recovery
from kafkaproto.broker.persistence.cluster_state import ClusterPersistence
from kafkaproto.broker.quota import precedence
from kafkaproto.broker.quota.client_quotas import QuotaManager
from kafkaproto.broker.quota.mutations import MutationQuotas
from kafkaproto.broker.quota.precedence import Levels, level_of
from kafkaproto.broker.quota.replication_quotas import ReplicationQuota
from kafkaproto.broker.quota.sensors import ClientSensors
from kafkaproto.broker.replication import following
from kafkaproto.broker.replication.awaited_partitions import AwaitedAppend
from kafkaproto.broker.replication.followed_partition import FollowedPartition
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.replica_manager import ReplicaManager
from kafkaproto.broker.requests import charges
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import NOT_THROTTLED
from kafkaproto.records.batch import HEADER_BYTES, PREFIX_BYTES, BatchHeader, Record, read_header
from tests.simulation.bug import Bug, Original
from tests.simulation.injected_group_bugs import GROUP_BUGS
from tests.simulation.injected_transaction_bugs import TRANSACTION_BUGS
from tests.simulation.run import Broken, simulate

SEEDS = 90
_FIRST_SEEDS = Path(__file__).with_name("first_seeds.json")
"""The seeds with which the tests begin, so that the tests need not search for a seed. A wrong seed only makes a test slower."""
_MISMATCHES = ("AttributeError", "NameError", "TypeError")
"""Failures of an injected bug that no longer fits the code that it changes."""


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


def _marked_before_sending(original: Original) -> Original:
    def included(self: IncrementalContext[Any, Any], results: Sequence[Any]) -> Any:
        news = original(self, results)
        for key, result in news:
            self.session.partitions[key].note_reported(result)
        return news

    return included


def _acknowledged_without_a_record(_: Original) -> Original:
    def store_offsets(
        self: GroupStorage, group_id: str, offsets: Any, now_ms: int, stored: Callable[[int, int], None], **_: Any
    ) -> None:
        stored(0, now_ms)

    return store_offsets


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
    def acknowledge(self: FollowedPartition, now_ms: int) -> None:
        log = self.leader.log
        self.leader.follower_fetched(self.follower.broker_id, log.log_end_offset, log.log_start_offset, now_ms)

    return acknowledge


def _answered_before_replicated(_: Original) -> Original:
    return lambda self: True


def _not_muted(original: Original) -> Original:
    def respond(self: Connection, buffers: Any, throttle_ms: int, close: bool, now_ms: int) -> None:
        original(self, buffers, 0, close, now_ms)

    return respond


def _batch_skipped(original: Original) -> Original:
    def replicate_from(self: ReplicaLog, leader: ReplicaLog, *limits: Any, **more: Any) -> int:
        if (
            self.log_end_offset % 7 == 3
            and leader._newest is not None
            and leader._newest.base_offset > self.log_end_offset
        ):
            self.append_placed(leader._newest)
            return 1
        return int(original(self, leader, *limits, **more))

    return replicate_from


def _producers_forgotten(original: Original) -> Original:
    def restore(self: ReplicaLog, state: LogState) -> None:
        original(self, state._replace(producers={}))

    return restore


def _torn_tail_kept(original: Original) -> Original:
    def batches(self: recovery._Files, start: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
        try:
            yield from original(self, start, end)
        except recovery._Damage as damage:
            segment = next((s for s in self.segments if s.base <= damage.position < s.end and s.path is not None), None)
            if segment is None or segment.end - damage.position < HEADER_BYTES:
                raise
            header = read_header(segment.read(damage.position - segment.base, HEADER_BYTES), 0)
            remaining_bytes = segment.end - damage.position
            yield (
                damage.position,
                header._replace(batch_length=min(header.batch_length, remaining_bytes - PREFIX_BYTES)),
            )

    return batches


def _watermark_beyond_the_end(original: Original) -> Original:
    def lead(self: ReplicaLog, leader_epoch: int) -> None:
        original(self, leader_epoch)
        self.high_watermark = self.log_end_offset + 1

    return lead


def _last_value_dropped(_: Original) -> Original:
    def is_last(self: compaction._Cleaner, record: Record) -> bool:
        return record.key is not None and record.offset > self._latest.get(record.key, -1)

    return is_last


def _tombstone_dropped_at_once(original: Original) -> Original:
    def kept(self: compaction._Cleaner, batch: bytes, header: BatchHeader, *more: Any) -> bytes | None:
        delay_ms, self._delete_retention_ms = self._delete_retention_ms, 0
        try:
            return original(self, batch, header, *more)
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
        state_writer, self.state_writer = self.state_writer, None
        try:
            original(self, offset)
        finally:
            self.state_writer = state_writer

    return raise_log_start


def _epochs_not_read(original: Original) -> Original:
    def partition(states: Sequence[Any]) -> PartitionState:
        return replace(original(states), leader_epoch=0)

    return partition


def _expires_too_early(original: Original) -> Original:
    def expire(log: ReplicaLog, limits: retention.RetentionLimits, now_ms: int) -> bool:
        early = limits.age_ms // 2 if limits.age_ms > 0 else limits.age_ms
        return bool(original(log, limits._replace(age_ms=early), now_ms))

    return expire


def _known_clients_keep_their_bound(original: Original) -> Original:
    def quota_changed(self: ClientSensors[Any], *changed: Any) -> None:
        clients_before = dict(self._clients)
        original(self, *changed)
        self._clients.update(clients_before)

    return quota_changed


def _counts_anew_with_a_new_bound(original: Original) -> Original:
    def quota_changed(self: ClientSensors[Any], entity: Any, key: str, value: Any) -> None:
        original(self, entity, key, value)
        if key == self.key:
            self._sensors.clear()

    return quota_changed


def _levels_taken_back(original: Original) -> Original:
    def quota_changed(self: ClientSensors[Any], *changed: Any) -> None:
        self._levels = Levels.NONE
        original(self, *changed)
        for entity, key in self._store.all():
            self._levels |= level_of(entity) if key == self.key else Levels.NONE

    return quota_changed


def _not_capped(original: Original) -> Original:
    def record(self: QuotaManager, *used: Any) -> int:
        self._cap_ms = 2**31 - 1
        return int(original(self, *used))

    return record


def _muted_from_the_writing_on(original: Original) -> Original:
    def written(self: Connection, now_ms: int) -> None:
        decided = self.node.cluster.journal._going_on.get(self.connection_id)
        if decided is not None and self._throttle_timer is not None:
            self._throttle_timer.cancel()
            self._throttle_timer = self.node.timers.at(now_ms + decided.throttle_time_ms, self._throttle_over)
        original(self, now_ms)

    return written


def _shared_by_all_brokers(original: Original) -> Original:
    def begin(self: ClientSensors[Any], name: str, key: str, store: Any, *more: Any) -> None:
        original(self, name, key, store, *more)
        self._sensors = vars(store).setdefault(f"sensors of {key}", self._sensors)

    return begin


def _default_user_before_its_pairs(original: Original) -> Original:
    def of_pair(user: str, client_id: str) -> Any:
        return tuple(entity for entity in original(user, client_id) if entity.user)

    return of_pair


def _free_without_an_answer(original: Original) -> Original:
    def charge_produce(*request: Any) -> Any:
        *_, acks, _now_ms = request
        return NOT_THROTTLED if acks == 0 else original(*request)

    return charge_produce


def _fetch_not_woken(original: Original) -> Original:
    def check(self: Delayed, now_ms: int) -> None:
        if not isinstance(getattr(self._is_due, "__self__", None), FetchCondition):
            original(self, now_ms)

    return check


def _never_refused(original: Original) -> Original:
    def take(self: MutationQuotas, user: str, client_id: str | None, partitions: int, _: bool, now_ms: int) -> Any:
        return original(self, user, client_id, partitions, False, now_ms)

    return take


def _rate_never_raised(original: Original) -> Original:
    def limit(self: ReplicationQuota, rate: int) -> None:
        original(self, min(rate, self.bound))

    return limit


BUGS = {
    "high watermark one too high": Bug(Partition, "advance_high_watermark", _watermark_too_high),
    "leader epoch not bumped by an election": Bug(controller, "_led_by", _epoch_not_bumped),
    "session marked before a throttled answer": Bug(IncrementalContext, "included", _marked_before_sending),
    "follower does not truncate": Bug(following, "truncate_to_leader", _nothing),
    "follower appends the newest batch before older ones": Bug(ReplicaLog, "replicate_from", _batch_skipped),
    "in-sync replicas never shrink": Bug(Partition, "shrink_isr", _nothing),
    "duplicate sequence appended again": Bug(ProducerStates, "check", _duplicate_taken),
    "size limit late by a batch": Bug(ReplicaLog, "read", _limit_one_batch_late),
    "parked fetch not woken": Bug(Delayed, "check", _fetch_not_woken),
    "log start not enforced": Bug(Reader, "_out_of_bounds", _start_not_enforced),
    "preferred replica outside the ISR": Bug(ReplicaManager, "_replica_views", _preferred_outside_the_isr),
    "acks=all answered before it is replicated": Bug(AwaitedAppend, "has_come", _answered_before_replicated),
    "follower acknowledges what it does not have": Bug(
        FollowedPartition, "acknowledge", _acknowledged_before_it_is_there
    ),
    "throttled connection not muted": Bug(Connection, "respond", _not_muted),
    "recovery forgets producers": Bug(ReplicaLog, "restore", _producers_forgotten),
    "recovery keeps a torn tail": Bug(recovery._Files, "batches", _torn_tail_kept),
    "leader begins with a high watermark above its end": Bug(ReplicaLog, "lead", _watermark_beyond_the_end),
    "recovery forgets leader epochs": Bug(records, "_partition", _epochs_not_read),
    "log start moved without a fact": Bug(ReplicaLog, "raise_log_start", _noted_after_it_happened),
    "commit not remembered": Bug(GroupStorage, "store_offsets", _acknowledged_without_a_record),
    "write that the disk refused acknowledged": Bug(ReplicaLog, "append", _refused_write_acknowledged),
    "compaction drops the last value of a key": Bug(compaction._Cleaner, "_is_last", _last_value_dropped),
    "compaction drops a tombstone at once": Bug(compaction._Cleaner, "_compacted", _tombstone_dropped_at_once),
    "records expire too early": Bug(retention, "expire", _expires_too_early),
    "throttled fetch not taken back": Bug(QuotaManager, "unrecord", _nothing),
    "changed quota ignored for known clients": Bug(ClientSensors, "quota_changed", _known_clients_keep_their_bound),
    "changed quota holds for new samples only": Bug(ClientSensors, "quota_changed", _counts_anew_with_a_new_bound),
    "level of quotas taken back": Bug(ClientSensors, "quota_changed", _levels_taken_back),
    "request time throttled beyond a window": Bug(QuotaManager, "record", _not_capped),
    "mute begins when the answer is written": Bug(Connection, "written", _muted_from_the_writing_on),
    "sensors shared by all brokers": Bug(ClientSensors, "__init__", _shared_by_all_brokers),
    "sensors outlive a stop of their broker": Bug(Node, "reset_quotas", _nothing),
    "default user before its pairs": Bug(precedence, "_of_pair", _default_user_before_its_pairs),
    "acks=0 is free": Bug(charges, "charge_produce", _free_without_an_answer),
    "mutations never refused": Bug(MutationQuotas, "take", _never_refused),
    "idle sensors never go": Bug(ClientSensors, "_drop_idle", _nothing),
    "replication rate never raised": Bug(ReplicationQuota, "limit", _rate_never_raised),
    "quota not remembered": Bug(ClusterPersistence, "remember_quotas", _nothing),
    **GROUP_BUGS,
    **TRANSACTION_BUGS,
}


class Caught(NamedTuple):
    """The proof that found a bug. way: kind of proof. after: number of seeds. failure: the failure message."""

    way: str
    after: int
    failure: str


def first_seeds() -> dict[str, int]:
    """Return a seed that caught each bug when `--write` ran last, by name of the bug."""
    seeds: dict[str, int] = json.loads(_FIRST_SEEDS.read_text())
    return seeds


def caught_by_simulation(bug: Bug, seeds: int = SEEDS, try_first: int = 0) -> Caught | None:
    """Run seeds until one fails, and return None if none does. Raises TypeError if the injected bug itself does not work.

    try_first: the seed with which to begin, because it caught this bug before.
    """
    with bug.injected():
        for seed in dict.fromkeys((try_first, *range(seeds))):
            try:
                simulate(seed)
            except Broken as broken:
                failure = str(broken).splitlines()[-2]
                if failure.startswith(_MISMATCHES):
                    raise TypeError("the injected bug does not match the code") from broken
                return Caught("simulation", seed + 1, failure)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.injected_bugs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--write", action="store_true", help=f"write the first seed that finds each bug to {_FIRST_SEEDS.name}"
    )
    options = parser.parse_args()
    missed = 0
    seeds: dict[str, int] = {}
    for name, bug in BUGS.items():
        caught = caught_by_simulation(bug, try_first=first_seeds().get(name, 0))
        missed += caught is None
        if caught is not None:
            seeds[name] = caught.after - 1
        outcome_text = "not caught" if caught is None else f"{caught.way}, seed {caught.after}: {caught.failure[:150]}"
        sys.stdout.write(f"{name}: {outcome_text}\n")
        sys.stdout.flush()
    if options.write:
        _FIRST_SEEDS.write_text(json.dumps(seeds, indent=1, sort_keys=True) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
