"""Three replicas over one store against a naive model: lists of batches (rules X-2, X-3, X-4, F-7 to F-14, E-4).

Appends, replication, new leaders, truncation, raised log starts and reads in random order, with segments and budgets so
small that every kind of segment appears and every read may meet a boundary.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafkaproto.broker.log import index as index_module
from kafkaproto.broker.log import store as store_module
from kafkaproto.broker.log.errors import OffsetOutOfRange
from kafkaproto.broker.log.replica_log import LogSlice, ReplicaLog
from kafkaproto.broker.log.store import FileRange, MemoryBudget, Store
from kafkaproto.records.batch import read_header
from tests.support.broker.batches import NOW_MS, batch

REPLICAS = 3
replica = st.integers(0, REPLICAS - 1)
fraction = st.floats(0, 1)


@dataclass(frozen=True)
class Written:
    """A batch of the model. Two logs agree where they hold the identical object."""

    base: int
    last: int
    epoch: int
    data: bytes


@dataclass
class Model:
    start: int = 0
    batches: list[Written] = field(default_factory=list)
    empty_end: int = 0

    @property
    def end(self) -> int:
        return self.batches[-1].last + 1 if self.batches else self.empty_end

    def visible(self, offset: int, bound: int) -> list[Written]:
        return [b for b in self.batches if b.last >= offset and b.last < bound]

    def raise_start(self, offset: int) -> None:
        self.empty_end, self.start = self.end, offset
        self.batches = [b for b in self.batches if b.last >= offset]

    def cut(self, offset: int) -> None:
        cut = next((b for b in self.batches if b.last >= offset), None)
        if cut is not None:
            self.empty_end = cut.base
            self.batches = self.batches[: self.batches.index(cut)]
            self.start = min(self.start, self.end)


def content(part: LogSlice) -> bytes:
    return part.records.read() if isinstance(part.records, FileRange) else part.records


class ReplicasOfAPartition(RuleBasedStateMachine):
    @initialize(
        segment_bytes=st.sampled_from([300, 2000, 9000, 1 << 30]),
        memory=st.sampled_from([0, 3000, 12_000, 1 << 20]),
        small=st.sampled_from([0, 500, 5000, 1 << 16]),
        index_interval=st.sampled_from([1, 300, 4096]),
    )
    def begin(self, segment_bytes: int, memory: int, small: int, index_interval: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(store_module, "SMALL_SEGMENT_BYTES", small)
        self.patch.setattr(index_module, "INTERVAL_BYTES", index_interval)
        self.budget = MemoryBudget(memory)
        self.store = Store(self.budget, segment_bytes)
        self.logs = [ReplicaLog(self.store) for _ in range(REPLICAS)]
        self.models = [Model() for _ in range(REPLICAS)]
        self.leader, self.epoch = 0, 0
        self.leases: list[tuple[LogSlice, bytes]] = []

    def teardown(self) -> None:
        if hasattr(self, "patch"):
            self.patch.undo()
            self.leases.clear()
            self.store.close()
            assert (self.budget.used_bytes, self.budget.open_files) == (0, 0)

    @rule(count=st.integers(1, 4), size=st.sampled_from([0, 10, 100, 400, 3000]), times=st.integers(1, 12))
    def append(self, count: int, size: int, times: int) -> None:
        log, model = self.logs[self.leader], self.models[self.leader]
        for _ in range(times):
            data = batch(count, size)
            appended = log.append(memoryview(data), read_header(data), self.epoch, NOW_MS)
            assert (appended.base_offset, appended.last_offset) == (model.end, model.end + count - 1)  # gapless
            model.batches.append(Written(appended.base_offset, appended.last_offset, self.epoch, bytes(data)))

    @rule(chosen=replica)
    def lead(self, chosen: int) -> None:
        self.leader, self.epoch = chosen, self.epoch + 1

    @rule(chosen=replica, limit=st.sampled_from([0, 50, 500, 5000, 1 << 40]), at_least_one=st.booleans())
    def replicate(self, chosen: int, limit: int, at_least_one: bool) -> None:
        """Replicate like a follower: find the divergence by epochs, truncate, and fetch."""
        follower, model = self.logs[chosen], self.models[chosen]
        leader, leader_model = self.logs[self.leader], self.models[self.leader]
        if chosen == self.leader:
            return
        if not leader_model.start <= model.end <= leader_model.end:
            self.follow_from_the_start(chosen)
            return
        agreed = self.agreed_end(model, leader_model)
        if agreed < model.end:
            follower.truncate_to(agreed)
            model.cut(agreed)
        ahead = leader_model.visible(model.end, 1 << 60)
        overlaps = bool(model.batches and ahead and ahead[0].base < model.end)
        if overlaps or not leader_model.start <= model.end:
            self.follow_from_the_start(chosen)
            return
        expected: list[Written] = []
        for model_batch in ahead:
            expected_bytes = sum(len(b.data) for b in expected)
            if expected_bytes + len(model_batch.data) > limit and not (at_least_one and not expected):
                break
            expected.append(model_batch)
        before = self.store.end_position
        assert follower.replicate_from(leader, limit, at_least_one) == sum(len(b.data) for b in expected)
        assert self.store.end_position == before  # no byte was copied
        model.batches += expected

    def follow_from_the_start(self, chosen: int) -> None:
        start = self.models[self.leader].start
        self.logs[chosen].restart_at(start)
        self.models[chosen] = Model(start=start, empty_end=start)

    @staticmethod
    def agreed_end(model: Model, other: Model) -> int:
        """Return the offset up to which the first log holds no batch that the other log lacks."""
        other_batches = {id(b) for b in other.batches}
        for written in model.batches:
            if id(written) not in other_batches and written.last >= other.start:
                return written.base
        return model.end

    @rule(chosen=replica, where=fraction)
    def truncate(self, chosen: int, where: float) -> None:
        log, model = self.logs[chosen], self.models[chosen]
        offset = model.start + int((model.end - model.start) * where)
        log.truncate_to(offset)
        model.cut(offset)

    @rule(chosen=replica, where=fraction)
    def raise_log_start(self, chosen: int, where: float) -> None:
        log, model = self.logs[chosen], self.models[chosen]
        offset = model.start + int((model.end - model.start) * where)
        log.raise_log_start(offset)
        model.raise_start(offset)

    @rule(
        chosen=replica,
        where=fraction,
        bound=fraction,
        limit=st.sampled_from([0, 1, 90, 200, 700, 4000, 1 << 40]),
        at_least_one=st.booleans(),
        keep=st.booleans(),
    )
    def read(self, chosen: int, where: float, bound: float, limit: int, at_least_one: bool, keep: bool) -> None:
        log, model = self.logs[chosen], self.models[chosen]
        span = model.end - model.start
        offset, bound_offset = model.start + int(span * where), model.start + round(span * bound)
        part = log.read(offset, limit, bound_offset, at_least_one)
        data = content(part)
        assert len(data) == part.size_bytes
        visible = model.visible(offset, bound_offset)
        assert log.bytes_between(offset, bound_offset) == sum(len(b.data) for b in visible)
        if not visible:
            assert part == LogSlice(b"", 0, 0)
            return
        first = visible[0].data
        assert part.first_batch_bytes == len(first)
        if limit < len(first):
            assert data == (first if at_least_one else b"")
            return
        assert len(data) <= limit
        whole = b"".join(b.data for b in visible)
        assert whole.startswith(data)
        if len(data) < min(limit, len(whole)):  # a segment or a run ended: at a batch
            boundaries = {sum(len(b.data) for b in visible[:i]) for i in range(1, len(visible))}
            assert len(data) in boundaries
        for read_bytes in (len(data), len(data) - 1):
            ends = [b.last + 1 for i, b in enumerate(visible, 1) if sum(len(c.data) for c in visible[:i]) <= read_bytes]
            assert log.offset_behind(offset, read_bytes) == (ends[-1] if ends else offset)
        if keep:
            self.leases.append((part, data))

    @rule(chosen=replica, beyond=st.integers(1, 5))
    def read_out_of_range(self, chosen: int, beyond: int) -> None:
        log, model = self.logs[chosen], self.models[chosen]
        for offset in (model.start - beyond, model.end + beyond):
            with pytest.raises(OffsetOutOfRange):
                log.read(offset, 100, 1 << 60, True)

    @invariant()
    def logs_are_what_the_model_says(self) -> None:
        if not hasattr(self, "logs"):
            return
        for log, model in zip(self.logs, self.models, strict=True):
            assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
            assert log.read_all() == b"".join(b.data for b in model.batches)

    @invariant()
    def memory_is_within_the_budget(self) -> None:
        if hasattr(self, "budget"):
            assert 0 <= self.budget.used_bytes <= self.budget.limit_bytes

    @invariant()
    def sent_bytes_never_change(self) -> None:
        for part, data in getattr(self, "leases", []):
            assert content(part) == data


TestReplicasOfAPartition = ReplicasOfAPartition.TestCase
TestReplicasOfAPartition.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
