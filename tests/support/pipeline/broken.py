"""Brokers with one broken rule, and the traffic that clients see: one trace for each, in virtual time.

Each scene runs twice: with the correct broker and with one broken function. `TARGET` is the client whose request the fault affects; other
clients get correct responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from kafkaproto.broker.fetch import session as fetch_session
from kafkaproto.broker.fetch.read import Reader
from kafkaproto.broker.fetch.session import IncrementalContext
from kafkaproto.broker.handlers import fetch as fetch_handler
from kafkaproto.broker.handlers import list_offsets as list_offsets_handler
from kafkaproto.broker.handlers import metadata as metadata_handler
from kafkaproto.broker.handlers import produce as produce_handler
from kafkaproto.broker.log.producer_state import ProducerStates
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.network.connection import Connection
from kafkaproto.broker.quota.client_quotas import QuotaManager
from kafkaproto.broker.quota.windows import SampledRate
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.selector import RackAwareReplicaSelector
from kafkaproto.broker.requests import pipeline, throttling
from kafkaproto.broker.server.tracing import meta_of
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.fetch import ForgottenTopic
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.records.batch import TRANSACTIONAL, read_header
from kafkaproto.records.control import build_end_txn_marker
from kafkaproto.trace.format import Entry, Event
from tests.support.recording import recorder_into
from tests.support.wire import batch, fetch, limit, metadata, produce

TARGET = "target"
PRODUCER_ID = 77
EPOCH_MS = 1_700_000_000_000
CONFIG = {
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "0.broker.rack": "a",
    "1.broker.rack": "b",
    "2.broker.rack": "c",
    "fetch.max.bytes": "20000",
    "group.coordinator.rebalance.protocols": "classic,consumer",
}


class Scene:
    """Three brokers in three racks, with topic t: one partition, replicated to all brokers, with ten batches that a client has read."""

    def __init__(self) -> None:
        self.cluster = VirtualCluster(3, CONFIG)
        self.entries: list[Entry] = []
        meta = meta_of(self.cluster.state) | {"wall_ms": EPOCH_MS, "seq": 0}
        self.entries.append(Event("meta", {**meta, "broker": -1}))
        self.cluster.state.record(recorder_into(self.entries))
        self.cluster.topic("t", 1, 3)
        self.cluster.topic("other", 1, 3)
        self.leader = self.cluster.state.controller.image.topics["t"].partitions[0].leader
        self.good = self.connect("good")
        self.target = self.connect(TARGET)
        self.good.ask(metadata(["t", "other"]), 12)
        for place in range(10):
            self.write(place)
        self.read(self.good)

    def connect(self, client_id: str) -> MemoryClient:
        return self.cluster.connect(self.leader, client_id)

    def write(
        self, place: int, client: MemoryClient | None = None, *, sequence: int | None = None, acks: int = -1
    ) -> None:
        """Produce the batch at one place in the log: one record of 1,000 bytes, a second after the previous one."""
        data = batch(
            b"x" * 1000,
            timestamp=EPOCH_MS + 1000 * place,
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            base_sequence=place if sequence is None else sequence,
        )
        client_used = client or self.good
        before = len(client_used.answers)
        client_used.send(produce("t", data, acks=acks), 9)
        self.cluster.advance(0)
        assert len(client_used.answers) == before + 1

    def read(self, client: MemoryClient, offset: int = 0, **options: Any) -> Any:
        return client.ask(fetch(("t", 0, offset), **options), 11)

    def session(self, client: MemoryClient, offset: int = 10) -> int:
        """Open a fetch session with both topics, at `offset` of t, and return its id."""
        return int(client.ask(fetch(("t", 0, offset), ("other", 0, 0), session=(0, 0)), 11).session_id)

    def look_up(self, client: MemoryClient, timestamp: int) -> None:
        topic = ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=timestamp)])
        client.ask(ListOffsetsRequest(-1, topics=[topic]), 5)

    @property
    def log(self) -> ReplicaLog:
        replica = self.cluster.state.nodes[self.leader].replicas.find("t", 0)
        assert replica is not None
        return replica.log


Patch = pytest.MonkeyPatch
Act = Callable[[Scene], None]


class Fault(NamedTuple):
    """A fault of the broker and the traffic that shows it.

    breaks: the change to the broker. act: what clients do then; their last step is the first one that the fault affects. must: the
    rules that report the fault. may: rules that may report a consequence.
    """

    breaks: Callable[[Patch], None]
    act: Act
    must: frozenset[str]
    may: frozenset[str] = frozenset()


FAULTS: dict[str, Fault] = {}


def fault(
    act: Act, *must: str, may: tuple[str, ...] = ()
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def note(breaks: Callable[[Patch], None]) -> Callable[[Patch], None]:
        FAULTS[breaks.__name__] = Fault(breaks, act, frozenset(must), frozenset(may))
        return breaks

    return note


def wrapped(patch: Patch, owner: Any, name: str, change: Callable[..., Any]) -> None:
    """Replace a function by `change`, which is called with the original and the original's arguments."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *arguments, **named: change(original, *arguments, **named))


# ---- what clients do ---------------------------------------------------------------------------------------------------------


def reads_all(scene: Scene) -> None:
    scene.read(scene.target)
    scene.read(scene.good)


def reads_little(scene: Scene) -> None:
    scene.read(scene.target, max_bytes=2500)


def reads_little_of_one(scene: Scene) -> None:
    scene.read(scene.target, partition_max=2500)


def writes_over_its_quota(scene: Scene) -> None:
    limit(scene.cluster, TARGET, producer_byte_rate=100.0)
    scene.write(10, scene.target)


def writes_while_muted(scene: Scene) -> None:
    writes_over_its_quota(scene)
    scene.target.send(metadata(["t"]), 9)
    scene.cluster.advance(100_000)


def reads_over_its_quota(scene: Scene) -> None:
    limit(scene.cluster, TARGET, consumer_byte_rate=300.0)
    for _ in range(3):
        scene.target.send(fetch(("t", 0, 0)), 11)
        scene.cluster.advance(5_000)
    scene.cluster.advance(60_000)


def steps_after_a_write(scene: Scene) -> None:
    session_id = scene.session(scene.target)
    scene.write(10)
    scene.read(scene.good, 10)
    scene.target.ask(fetch(session=(session_id, 1)), 11)


def steps_twice(scene: Scene) -> None:
    session_id = scene.session(scene.target)
    scene.target.ask(fetch(session=(session_id, 1)), 11)
    scene.target.ask(fetch(session=(session_id, 2)), 11)


def forgets_and_steps(scene: Scene) -> None:
    session_id = scene.session(scene.target)
    request = fetch(session=(session_id, 1))
    request.forgotten_topics_data = [ForgottenTopic("t", bytes(16), [0])]
    scene.target.ask(request, 11)
    scene.write(10)
    scene.target.ask(fetch(session=(session_id, 2)), 11)


def writes_out_of_sequence(scene: Scene) -> None:
    scene.write(10, sequence=15)
    scene.read(scene.target, 9)


def writes_twice(scene: Scene) -> None:
    scene.write(9, scene.target)


def reads_in_a_rack(scene: Scene) -> None:
    rack = next(rack for number, rack in enumerate("abc") if number != scene.leader)
    scene.read(scene.target, rack=rack)


def asks_for_the_end(scene: Scene) -> None:
    scene.look_up(scene.target, -1)
    scene.read(scene.good, 10)


def asks_for_a_time(scene: Scene) -> None:
    scene.look_up(scene.target, EPOCH_MS + 3500)


def asks_who_is_where(scene: Scene) -> None:
    scene.target.ask(metadata(["t"]), 12)


def waits_for_records(scene: Scene) -> None:
    scene.target.send(fetch(("t", 0, 10), max_wait_ms=500, min_bytes=1), 11)
    scene.cluster.advance(600)


def writes_and_reads(scene: Scene) -> None:
    scene.write(10)
    scene.read(scene.target, 10)


def writes_more(scene: Scene) -> None:
    scene.write(10, scene.target)


def writes_for_the_leader_only(scene: Scene) -> None:
    scene.write(10, scene.target, acks=1)


def reads_at_five(scene: Scene) -> None:
    scene.read(scene.target, 5, partition_max=1200)
    scene.read(scene.good, 5)


def reads_transactions(scene: Scene) -> None:
    """Read an aborted transaction of two batches, and the marker that ends it, twice."""
    batches = [
        batch(b"abcd", producer_id=5, producer_epoch=0, base_sequence=sequence, attributes=TRANSACTIONAL)
        for sequence in (0, 1)
    ]
    marker = build_end_txn_marker(
        False, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp=scene.cluster.now_ms
    )
    for data in map(bytearray, (*batches, marker)):
        scene.log.append(memoryview(data), read_header(data, 0), 0, scene.cluster.now_ms)
    scene.log.commit(scene.log.log_end_offset)
    scene.read(scene.good, 10, isolation=1)
    scene.read(scene.target, 10, isolation=1)


def reads_committed(scene: Scene) -> None:
    scene.read(scene.target, isolation=1)


# ---- faults of the broker ----------------------------------------------------------------------------------------------------


@fault(reads_little, "1")
def max_bytes_ignored(patch: Patch) -> None:
    patch.setattr(fetch_handler, "_max_bytes", lambda *_: 1 << 30)


@fault(reads_little_of_one, "2")
def partition_limit_ignored(patch: Patch) -> None:
    wrapped(patch, ReplicaLog, "read", lambda read, log, at, _, bound, **how: read(log, at, 1 << 30, bound, **how))


@fault(writes_while_muted, "3")
def mute_skipped(patch: Patch) -> None:
    wrapped(
        patch,
        Connection,
        "respond",
        lambda respond, self, buffers, _, close, now: respond(self, buffers, 0, close, now),
    )


@fault(writes_over_its_quota, "4")
def throttled_a_millisecond_too_long(patch: Patch) -> None:
    wrapped(
        patch,
        SampledRate,
        "record_and_throttle",
        lambda record, *arguments: (throttle := record(*arguments)) and throttle + 1,
    )


@fault(reads_over_its_quota, "5")
def throttled_with_its_records(patch: Patch) -> None:
    patch.setattr(throttling, "without_data", lambda exchange, frame: frame)


@fault(reads_over_its_quota, "5-bytes")
def throttled_bytes_counted(patch: Patch) -> None:
    patch.setattr(QuotaManager, "unrecord", lambda *_: None)


@fault(reads_all, "9-lost", "8-gap", may=("15",))
def batch_left_out(patch: Patch) -> None:
    def partition(original: Any, index: int, result: Any) -> Any:
        partition_data = original(index, result)
        size = result.size_bytes // 10
        partition_data.records = (
            record_bytes(partition_data.records)[: 4 * size] + record_bytes(partition_data.records)[5 * size :]
        )
        return partition_data

    only_for_target(patch, partition)


@fault(reads_all, "9")
def batch_changed(patch: Patch) -> None:
    def partition(original: Any, index: int, result: Any) -> Any:
        partition_data = original(index, result)
        data = bytearray(record_bytes(partition_data.records))
        data[17] ^= 1
        partition_data.records = bytes(data)
        return partition_data

    only_for_target(patch, partition)


@fault(reads_all, "10", "20-HW")
def high_watermark_falls(patch: Patch) -> None:
    def partition(original: Any, index: int, result: Any) -> Any:
        partition_data = original(index, result)
        partition_data.high_watermark -= 1
        partition_data.last_stable_offset -= 1
        return partition_data

    only_for_target(patch, partition)


@fault(reads_committed, "11", "10")
def read_above_the_stable_offset(patch: Patch) -> None:
    patch.setattr(ReplicaLog, "last_stable_offset", property(lambda log: log.high_watermark - 2))
    patch.setattr(Reader, "bound", lambda self, params, partition: partition.log.high_watermark)


@fault(reads_transactions, "11-aborted")
def aborted_transaction_left_out(patch: Patch) -> None:
    def partition(original: Any, index: int, result: Any) -> Any:
        partition_data = original(index, result)
        partition_data.aborted_transactions = partition_data.aborted_transactions and []
        return partition_data

    only_for_target(patch, partition)


@fault(reads_at_five, "12")
def answered_from_the_beginning(patch: Patch) -> None:
    wrapped(
        patch, ReplicaLog, "read", lambda read, log, at, *rest, **how: read(log, 0 if at == 5 else at, *rest, **how)
    )


@fault(waits_for_records, "13-early")
def min_bytes_ignored(patch: Patch) -> None:
    patch.setattr(fetch_handler, "must_respond_now", lambda *_: True)


@fault(reads_in_a_rack, "14")
def preferred_in_another_rack(patch: Patch) -> None:
    def select(original: Any, self: Any, topic_partition: Any, client: Any, view: Any) -> Any:
        wrong = [r for r in view.replicas if r.rack != client.rack_id and r is not view.leader]
        return wrong[0]

    wrapped(patch, RackAwareReplicaSelector, "select", select)


@fault(writes_out_of_sequence, "15")
def sequence_not_checked(patch: Patch) -> None:
    patch.setattr(ProducerStates, "check", lambda *_: None)


@fault(writes_twice, "15-twice")
def duplicate_appended(patch: Patch) -> None:
    patch.setattr(ProducerStates, "check", lambda *_: None)


@fault(asks_for_the_end, "16")
def latest_offset_one_too_high(patch: Patch) -> None:
    wrapped(
        patch,
        list_offsets_handler,
        "_look_up",
        lambda look, *arguments: (offset_result := look(*arguments))._replace(offset=offset_result.offset + 1),
    )


@fault(asks_for_a_time, "16-time")
def later_offset_for_a_time(patch: Patch) -> None:
    wrapped(
        patch,
        list_offsets_handler,
        "_look_up",
        lambda look, *arguments: (record_found := look(*arguments))._replace(
            offset=record_found.offset + 1, timestamp=record_found.timestamp + 1000
        ),
    )


@fault(steps_after_a_write, "17")
def session_partition_left_out(patch: Patch) -> None:
    patch.setattr(IncrementalContext, "included", lambda *_: ())


@fault(steps_twice, "17")
def session_step_refused(patch: Patch) -> None:
    patch.setattr(fetch_session, "next_epoch", lambda epoch: epoch)


@fault(forgets_and_steps, "17")
def forgotten_partition_kept(patch: Patch) -> None:
    wrapped(patch, fetch_session, "_update", lambda update, session, partitions, _: update(session, partitions, ()))


@fault(reads_at_five, "18")
def out_of_range_inside_the_log(patch: Patch) -> None:
    wrapped(
        patch,
        Reader,
        "_out_of_bounds",
        lambda original, self, params, fetched, *rest: (
            self._out_of_range(rest[-1])
            if params.max_bytes and _RUNNING[-1] == TARGET
            else original(self, params, fetched, *rest)
        ),
    )


@fault(asks_who_is_where, "19")
def topic_ids_exchanged(patch: Patch) -> None:
    def topic(original: Any, context: Any, request: Any, image: Any, topic_result: Any) -> Any:
        other = image.topics["other" if topic_result.name == "t" else "t"]
        return original(context, request, image, replace(topic_result, topic_id=other.topic_id))

    wrapped(patch, metadata_handler, "_topic", topic)


@fault(writes_for_the_leader_only, "10-moved")
def high_watermark_taken_back(patch: Patch) -> None:
    """Lower the high watermark once: a follower that sees a lower value fetches again."""
    fallen: list[bool] = []

    def falls(original: Any, self: Partition, now_ms: int) -> bool:
        moved = bool(original(self, now_ms))
        if moved and not fallen:
            fallen.append(True)
            self.log.commit(self.log.high_watermark - 1)
        return moved

    wrapped(patch, Partition, "advance_high_watermark", falls)


@fault(writes_more, "20-moved")
def acknowledged_before_the_others_have_it(patch: Patch) -> None:
    acknowledged_too_early(patch)


@fault(writes_and_reads, "20-HW", may=("8-gap", "20-moved"))
def acknowledged_too_early(patch: Patch) -> None:
    patch.setattr(Partition, "advance_high_watermark", lambda *_: False)
    patch.setattr(produce_handler, "_wait", lambda context, response, *_: produce_handler._reply(context, response))


# ---- playing a scene ---------------------------------------------------------------------------------------------------------

_RUNNING: list[str | None] = [None]
"""The client-ids of the requests in progress, innermost last."""


def record_bytes(records: Any) -> bytes:
    return bytes(records.read()) if hasattr(records, "read") else bytes(records or b"")


def only_for_target(patch: Patch, change: Callable[..., Any]) -> None:
    original = fetch_handler._partition
    patch.setattr(
        fetch_handler,
        "_partition",
        lambda index, result: (
            change(original, index, result) if _RUNNING[-1] == TARGET and result.size_bytes else original(index, result)
        ),
    )


@contextmanager
def _track_client(patch: Patch) -> Iterator[None]:
    """Keep the client-id of the current request in `_RUNNING`."""

    def dispatch(original: Any, exchange: Any, registration: Any, request: Any) -> Any:
        _RUNNING.append(exchange.client_id)
        try:
            return original(exchange, registration, request)
        finally:
            _RUNNING.pop()

    wrapped(patch, pipeline, "dispatch", dispatch)
    yield


def play(injected: Fault, broken: bool) -> list[Entry]:
    """Play the fault's scene and return the entries of its trace."""
    scene = Scene()
    with pytest.MonkeyPatch.context() as patch, _track_client(patch):
        if broken:
            injected.breaks(patch)
        injected.act(scene)
    return scene.entries
