"""Retention and compaction of two replicas over one store against a plain model of their records (N-15, KIP-534).

Appends of few keys, replication, high watermarks, truncation, raised log starts, retention and cleaning in random order, with
segments and budgets so small that every kind of segment appears; every offset is then read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafkaproto.broker.log import index as index_module
from kafkaproto.broker.log import store as store_module
from kafkaproto.broker.log.compaction import CleaningLimits, Shared, clean, cleanable
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.retention import RetentionLimits, expire
from kafkaproto.broker.log.store import FileRange, MemoryBudget, Store
from kafkaproto.records.batch import NewRecord, Record, batches, build_batch, complete_bytes, read_header, records
from tests.support.broker.batches import NOW_MS

REPLICAS = 2
DELETE_RETENTION_MS = 50
LIMITS = CleaningLimits(0, (1 << 63) - 1, 0.5, DELETE_RETENTION_MS)
replica = st.integers(0, REPLICAS - 1)
fraction = st.floats(0, 1)
pairs = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", None]), st.sampled_from([b"v" * 30, b"", None])),
    min_size=1,
    max_size=5,
)


@dataclass
class Written:
    """A batch of the model: its offsets, its remaining records, and the time until which its tombstones stay."""

    base: int
    last: int
    left: list[Record]
    horizon_ms: int | None = None
    producer: int = -1


@dataclass
class Model:
    start: int = 0
    end: int = 0
    clean: int = 0
    batches: list[Written] = field(default_factory=list)

    def from_offset(self, offset: int) -> list[Written]:
        return [batch for batch in self.batches if batch.last >= offset]

    def compact(self, upto: int, last_of_producer: dict[int, int], now_ms: int) -> None:
        newest = {
            r.key: r.offset
            for batch in self.batches
            if batch.base < upto and batch.last >= self.clean
            for r in batch.left
        }
        kept_batches = []
        for batch in self.batches:
            if batch.base < upto:
                expired = batch.horizon_ms is not None and now_ms >= batch.horizon_ms
                batch = Written(
                    batch.base,
                    batch.last,
                    [
                        r
                        for r in batch.left
                        if r.key is not None and r.offset >= newest.get(r.key, -1) and not (expired and r.value is None)
                    ],
                    batch.horizon_ms,
                    batch.producer,
                )
                if batch.horizon_ms is None and any(r.value is None for r in batch.left):
                    batch.horizon_ms = now_ms + DELETE_RETENTION_MS
                if not batch.left and last_of_producer.get(batch.producer) != batch.last:
                    continue
            kept_batches.append(batch)
        self.batches, self.clean = kept_batches, upto


def content(part: object) -> bytes:
    return part.read() if isinstance(part, FileRange) else bytes(part)  # type: ignore[call-overload]


class Cleanup(RuleBasedStateMachine):
    @initialize(
        segment_bytes=st.sampled_from([1, 300, 1000]),
        memory=st.sampled_from([0, 3000, 1 << 20]),
        small=st.sampled_from([0, 500, 1 << 16]),
        index_interval=st.sampled_from([1, 300, 4096]),
    )
    def begin(self, segment_bytes: int, memory: int, small: int, index_interval: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(store_module, "SMALL_SEGMENT_BYTES", small)
        self.patch.setattr(index_module, "INTERVAL_BYTES", index_interval)
        self.store = Store(MemoryBudget(memory), segment_bytes)
        self.logs = [ReplicaLog(self.store) for _ in range(REPLICAS)]
        self.models = [Model() for _ in range(REPLICAS)]
        self.now_ms = NOW_MS
        self.sequence = 0
        self.leases: list[tuple[object, bytes]] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.patch.undo()
            # Bytes that a response still sends are not overwritten.
            assert all(content(lease[0]) == lease[1] for lease in self.leases)
            self.leases.clear()
            self.store.close()
            assert self.store.budget.used_bytes == 0

    @rule(key_values=pairs, later_ms=st.integers(0, 40), producer=st.sampled_from([-1, 7]))
    def append(self, key_values: list[tuple[bytes | None, bytes | None]], later_ms: int, producer: int) -> None:
        self.now_ms += later_ms
        log, model = self.logs[0], self.models[0]
        new = [NewRecord(value, key, self.now_ms) for key, value in key_values]
        producer_state = log.producers.producers.get(producer)
        sequence = -1 if producer < 0 else (producer_state.batches[-1].last_sequence + 1 if producer_state else 0)
        data = bytearray(
            build_batch(new, producer_id=producer, producer_epoch=0 if producer >= 0 else -1, base_sequence=sequence)
        )
        base = log.append(memoryview(data), read_header(data), 0, self.now_ms).base_offset
        assert base == model.end
        model_records = [Record(base + i, self.now_ms, key, value, ()) for i, (key, value) in enumerate(key_values)]
        model.end = base + len(key_values)
        model.batches.append(Written(base, model.end - 1, model_records, None, producer))

    @rule()
    def replicate(self) -> None:
        (leader, follower), (leader_model, model) = self.logs, self.models
        if not leader_model.start <= model.end <= leader_model.end:
            follower.restart_at(leader_model.start)
            self.models[1] = model = Model(leader_model.start, leader_model.start, leader_model.start)
        ahead = leader_model.from_offset(model.end)
        if ahead and ahead[0].base < model.end:
            follower.restart_at(leader_model.start)
            self.models[1] = model = Model(leader_model.start, leader_model.start, leader_model.start)
            ahead = leader_model.from_offset(model.end)
        before = self.store.end_position
        follower.replicate_from(leader, 1 << 40)
        assert self.store.end_position == before
        if ahead:
            model.end = ahead[-1].last + 1
            model.batches += [Written(a.base, a.last, list(a.left), a.horizon_ms, a.producer) for a in ahead]

    @rule(chosen=replica, where=fraction)
    def commit(self, chosen: int, where: float) -> None:
        log = self.logs[chosen]
        log.high_watermark += int((log.log_end_offset - log.high_watermark) * where)

    @rule(chosen=replica, where=fraction)
    def truncate(self, chosen: int, where: float) -> None:
        """Truncate above the high watermark, as an election does."""
        log, model = self.logs[chosen], self.models[chosen]
        offset = log.high_watermark + int((model.end - log.high_watermark) * where)
        cut = next((batch for batch in model.batches if batch.last >= offset), None)
        log.truncate_to(offset)
        if offset < model.end:
            model.end = offset if cut is None else min(offset, cut.base)
            model.batches = [batch for batch in model.batches if batch.last < offset]
            model.start, model.clean = min(model.start, model.end), min(model.clean, model.end)
        self.forget_nothing_else(chosen)

    def forget_nothing_else(self, chosen: int) -> None:
        assert self.logs[chosen].log_end_offset == self.models[chosen].end

    @rule(chosen=replica, where=fraction)
    def raise_log_start(self, chosen: int, where: float) -> None:
        log, model = self.logs[chosen], self.models[chosen]
        self.starts_at(chosen, model.start + int((log.high_watermark - model.start) * where))
        log.raise_log_start(model.start)

    def starts_at(self, chosen: int, offset: int) -> None:
        model = self.models[chosen]
        model.start = offset
        model.batches = model.from_offset(offset)

    @rule(chosen=replica, age_ms=st.sampled_from([-1, 0, 30, 100]), size=st.sampled_from([-1, 0, 200, 1000]))
    def retain(self, chosen: int, age_ms: int, size: int) -> None:
        log, model = self.logs[chosen], self.models[chosen]
        segments = list(log.runs.segments())
        sizes = {header.base_offset: header.size for _, header in log.batches(model.start)}
        surplus = sum(sizes.values()) - size
        deleted_count, by_size = 0, size >= 0
        for number, segment in enumerate(segments):
            end = segments[number + 1].first_offset if number + 1 < len(segments) else model.end
            inside = [batch for batch in model.batches if segment.first_offset <= batch.last < end]
            segment_bytes = sum(sizes[batch.base] for batch in inside)
            timestamps = [
                header.max_timestamp
                for _, header in log.batches(model.start)
                if header.base_offset in {o.base for o in inside}
            ]
            by_size = by_size and surplus >= segment_bytes
            by_age = age_ms >= 0 and self.now_ms - max(timestamps) > age_ms
            if end > log.high_watermark or not (by_size or by_age):
                break
            surplus -= segment_bytes
            deleted_count += 1
        start = (
            model.start
            if not deleted_count
            else segments[deleted_count].first_offset
            if deleted_count < len(segments)
            else model.end
        )
        assert expire(log, RetentionLimits(age_ms, size), self.now_ms) == bool(deleted_count)
        self.starts_at(chosen, start)

    @rule(both=st.booleans())
    def compact(self, both: bool) -> None:
        shared: Shared = {}
        for chosen in range(REPLICAS if both else 1):
            log, model = self.logs[chosen], self.models[chosen]
            segments = cleanable(log, LIMITS, self.now_ms).segments
            upto = segments[-1].end_offset if segments else 0
            assert upto <= log.high_watermark
            assert upto <= (list(log.runs.segments())[-1].first_offset if len(log.runs) else 0)
            last = {producer: entry.batches[-1].last_offset for producer, entry in log.producers.producers.items()}
            assert (clean(log, LIMITS, self.now_ms, shared) > 0) == bool(segments)
            if segments:
                model.compact(upto, last, self.now_ms)

    @rule(chosen=replica, where=fraction)
    def lease(self, chosen: int, where: float) -> None:
        log = self.logs[chosen]
        part = log.read(
            log.log_start_offset + int((log.log_end_offset - log.log_start_offset) * where), 500, 1 << 60, True
        )
        self.leases.append((part.records, content(part.records)))

    @invariant()
    def logs_hold_what_the_models_hold(self) -> None:
        for log, model in zip(getattr(self, "logs", ()), getattr(self, "models", ()), strict=True):
            assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
            held_batches = [(h, list(records(self.store.read(p, h.size)))) for p, h in log.batches(model.start)]
            assert [(h.base_offset, h.last_offset, h.delete_horizon_ms) for h, _ in held_batches] == [
                (batch.base, batch.last, batch.horizon_ms if batch.left else None) for batch in model.batches
            ]
            assert [log_records for _, log_records in held_batches] == [batch.left for batch in model.batches]
            edges = [(s.first_offset, s.end_offset) for s in log.runs.segments()]
            assert [end for _, end in edges[:-1]] == [first for first, _ in edges[1:]]

    @invariant()
    def every_offset_can_be_read(self) -> None:
        for log, model in zip(getattr(self, "logs", ()), getattr(self, "models", ()), strict=True):
            for offset in range(model.start, model.end + 1):
                ahead = model.from_offset(offset)
                data = content(log.read(offset, 1 << 40, 1 << 60, True).records)
                whole = [batch.header.base_offset for batch in batches(data[: complete_bytes(data)])]
                assert whole == [batch.base for batch in ahead][: len(whole)] and bool(whole) == bool(ahead)
                assert log.bytes_between(offset, 1 << 60) == sum(
                    h.size for _, h in log.batches(model.start) if h.last_offset >= offset
                )


TestCleanup = Cleanup.TestCase
TestCleanup.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
