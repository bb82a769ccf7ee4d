"""Clients of a simulation: producers, consumers with fetch sessions, and whoever asks a single question with a known answer.

Each does one operation when asked to and knows what may be answered; an answer that may not be is an AssertionError.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from broker.replication.partition import Partition
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.fetch import ForgottenTopic
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.records.batch import (
    BatchHeader,
    Compression,
    NewRecord,
    batches,
    build_batch,
    complete_bytes,
    read_header,
)
from kafkaproto.records.batch import records as records_of
from tests.broker.wire import fetch, flat, produce, produced
from tests.simulation.world import Line, World

E = ErrorCode
ALL = -1
TopicPartition = tuple[str, int]
MOVED = {
    E.NOT_LEADER_OR_FOLLOWER,
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.NOT_ENOUGH_REPLICAS,
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
}
UNSURE = {*MOVED, E.REQUEST_TIMED_OUT}
LATEST, EARLIEST = -1, -2


class Client(ABC):
    """lines: one connection per broker, opened anew when the broker closed it."""

    def __init__(self, world: World, name: str, client_id: str = "test") -> None:
        self.world = world
        self.name = name
        self.client_id = client_id
        self.lines: dict[int, Line] = {}

    @abstractmethod
    def act(self) -> None:
        """Do one thing."""

    def line(self, broker_id: int) -> Line | None:
        """The connection to a broker, None while it is down."""
        line = self.lines.get(broker_id)
        if line is not None and line.is_open:
            return line
        if broker_id not in self.world.running():
            return None
        line = self.lines[broker_id] = Line(self.world, broker_id, self.name, self.client_id)
        self.connected(broker_id)
        return line

    def connected(self, broker_id: int) -> None:  # noqa: B027 - most have nothing to begin anew
        """The connection to a broker is a new one."""

    def some_partition(self) -> TopicPartition:
        topics = self.world.image.topics
        name = self.world.chance.choice(sorted(topics))
        return name, self.world.chance.randrange(len(topics[name].partitions))

    def line_to_leader(self, at: TopicPartition) -> Line | None:
        leader, _ = self.world.image.leader_of(*at)
        return None if leader < 0 else self.line(leader)


@dataclass(slots=True)
class Sequence:
    """What an idempotent producer has under way for one partition, and its last batches that were acknowledged."""

    next: int = 0
    pending: bytes | None = None
    done: list[tuple[bytes, int]] = field(default_factory=list)


class Producer(Client):
    """Produces with every acks; idempotent ones (acks=all only) send a batch again until they know that it was taken."""

    def __init__(self, world: World, name: str, idempotent: bool, client_id: str = "test") -> None:
        super().__init__(world, name, client_id)
        self.producer_id = world.cluster.state.next_producer_id() if idempotent else -1
        self.sequences: dict[tuple[bytes, int], Sequence] = {}
        self._count = 0

    def act(self) -> None:
        at = self.some_partition()
        line = self.line_to_leader(at)
        if line is not None and self.world.chance.random() < 0.05:
            line = self.line(self.world.chance.choice(self.world.running()))  # old metadata
        if line is None or line.expected:
            return
        if self.producer_id >= 0:
            self._send_in_sequence(line, at)
        else:
            self._send(line, at)

    def _send(self, line: Line, at: TopicPartition) -> None:
        chance = self.world.chance
        acks = chance.choice([0, 1, 1, ALL, ALL])
        data = self.batch()
        spoilt = acks != 0 and chance.random() < 0.1
        if spoilt:
            data = data[:-1] + bytes([data[-1] ^ 1])
        request = produce(*_split(at, data), acks=acks, timeout_ms=chance.choice([0, 100, 1500]))
        line.request(
            request, chance.choice([3, 7, 8, 9, 11]), lambda answer: self._heard(line, at, acks, data, spoilt, answer)
        )

    def batch(self, base_sequence: int = -1) -> bytes:
        """One to four records that nobody has sent before, with keys that come again."""
        chance = self.world.chance
        made = []
        for _ in range(chance.choice([1, 1, 2, 4])):
            self._count += 1
            value = f"{self.name}:{self._count}:".encode() + b"x" * chance.choice([0, 10, 150])
            made.append(NewRecord(value, b"k%d" % chance.randrange(5), self.world.now_ms))
        codec = chance.choice([Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4])
        known = {} if base_sequence < 0 else {"producer_id": self.producer_id, "producer_epoch": 0}
        return build_batch(made, compression=codec, base_sequence=base_sequence, **known)

    def _heard(self, line: Line, at: TopicPartition, acks: int, data: bytes, spoilt: bool, answer: Any) -> None:
        told = produced(answer)
        partition = self.world.replica(line.broker_id, *at)
        if told.error_code:
            allowed = {E.CORRUPT_MESSAGE} if spoilt else set() if acks == 1 else UNSURE
            assert told.error_code in allowed | MOVED, (
                f"error {told.error_code} for a {'spoilt' if spoilt else 'good'} batch"
            )
            return
        assert not spoilt, "a batch with a wrong checksum was taken"
        if acks == ALL and partition is not None:
            self._acknowledged(partition, told, data)

    def _acknowledged(self, partition: Partition, told: Any, data: bytes) -> BatchHeader:
        header = read_header(data)
        assert len(partition.isr) >= partition.effective_min_isr, (
            f"{partition}: acknowledged with ISR {set(partition.isr)}"
        )
        self.world.truth.acknowledged(partition, told.base_offset, header.last_offset_delta + 1, header.crc)
        return header

    # ---- idempotent ------------------------------------------------------------------------------------------------------------

    def _send_in_sequence(self, line: Line, at: TopicPartition) -> None:
        topic = self.world.image.topics[at[0]]
        state = self.sequences.setdefault((topic.topic_id, at[1]), Sequence())
        again = self.world.chance.random() < 0.2 and state.pending is None and bool(state.done)
        expected_base: int | None = None
        if again:
            data, expected_base = self.world.chance.choice(state.done[-5:])
        else:
            if state.pending is None:
                state.pending = self.batch(state.next)
            data = state.pending
        request = produce(*_split(at, data), acks=ALL, timeout_ms=self.world.chance.choice([100, 1500]))
        line.request(request, 9, lambda answer: self._heard_in_sequence(line, at, state, data, expected_base, answer))

    def _heard_in_sequence(
        self, line: Line, at: TopicPartition, state: Sequence, data: bytes, expected_base: int | None, answer: Any
    ) -> None:
        told = produced(answer)
        partition = self.world.replica(line.broker_id, *at)
        if told.error_code in UNSURE:
            return
        if partition is None or self._may_be_forgotten(partition):
            state.next, state.pending = 0, None
            state.done.clear()
            if told.error_code:  # what it had written is lost: another producer goes on
                self.producer_id = self.world.cluster.state.next_producer_id()
                self.sequences.clear()
            elif expected_base is None:
                state.next = read_header(data).base_sequence + read_header(data).last_offset_delta + 1
            return
        assert told.error_code == 0, f"error {told.error_code} for a batch in sequence"
        if expected_base is not None:
            assert told.base_offset == expected_base, (
                f"a duplicate of {expected_base} was appended at {told.base_offset}"
            )
            return
        header = self._acknowledged(partition, told, data)
        state.next = header.base_sequence + header.last_offset_delta + 1
        state.pending = None
        state.done.append((data, told.base_offset))

    def _may_be_forgotten(self, partition: Partition) -> bool:
        """Whether a replica may know nothing of this producer: it learns producers from the batches that are left."""
        history = self.world.truth.of(partition)
        return history.unclean or history.compacted or partition.log.log_start_offset > 0


def _split(at: TopicPartition, data: bytes) -> tuple[str, bytes, int]:
    return at[0], data, at[1]


@dataclass(slots=True)
class Told:
    """What a session has told of a partition; None: nothing that counts, so that it has to come again."""

    offsets: tuple[int, int] | None = None


@dataclass(slots=True)
class ClientSession:
    """The client's side of a fetch session with one broker. asked: positions as the broker has them."""

    session_id: int = 0
    epoch: int = 0
    asked: dict[TopicPartition, int] = field(default_factory=dict)
    told: dict[TopicPartition, Told] = field(default_factory=dict)


@dataclass(slots=True)
class Position:
    """Where a consumer stands. broker_id: whom it asks; generation: of the history that it reads."""

    offset: int
    broker_id: int
    generation: int
    topic_id: bytes


@dataclass(slots=True)
class UnderWay:
    """A fetch that is not answered yet: since when, how long it may take."""

    deadline_ms: int
    max_bytes: int
    partitions: dict[TopicPartition, int]


class Consumer(Client):
    """Reads everything, from leaders or the closest replicas, and never skips or repeats a committed record."""

    def __init__(self, world: World, name: str, version: int, rack: str = "", client_id: str = "test") -> None:
        super().__init__(world, name, client_id)
        self.version = version
        self.rack = rack
        self.positions: dict[TopicPartition, Position] = {}
        self.sessions: dict[int, ClientSession] = {}
        self.under_way: dict[int, UnderWay] = {}
        self.names: dict[bytes, str] = {}
        """All topics that ever were, by id; the newest of a name is last."""
        self.partition_max = world.chance.choice([60, 300, 100_000])

    def connected(self, broker_id: int) -> None:
        self.under_way.pop(broker_id, None)
        self.sessions[broker_id] = ClientSession()

    def act(self) -> None:
        self._look_for_topics()
        wanted: dict[int, list[TopicPartition]] = {}
        for at, position in self.positions.items():
            if position.broker_id < 0 or position.broker_id not in self.world.running():
                self._ask_leader(at)
            wanted.setdefault(position.broker_id, []).append(at)
        wanted.pop(-1, None)
        if wanted:
            broker_id = self.world.chance.choice(sorted(wanted))
            line = self.line(broker_id)
            if line is not None and not line.expected:
                self._fetch(line, wanted[broker_id])

    def _look_for_topics(self) -> None:
        topics = self.world.image.topics
        for at in [
            at for at, p in self.positions.items() if at[0] not in topics or topics[at[0]].topic_id != p.topic_id
        ]:
            del self.positions[at]
            for broker_id in self.sessions:  # by name it could be taken for the next topic of that name
                self.sessions[broker_id] = ClientSession()
        for name, topic in topics.items():
            self.names[topic.topic_id] = name
            for state in topic.partitions:
                if (name, state.index) not in self.positions:
                    self.positions[name, state.index] = Position(0, state.leader, 0, topic.topic_id)

    def _ask_leader(self, at: TopicPartition) -> None:
        self.positions[at].broker_id = self.world.image.leader_of(*at)[0]

    def _fetch(self, line: Line, wanted: list[TopicPartition]) -> None:
        chance = self.world.chance
        session = self.sessions[line.broker_id]
        has_sessions = self.version >= 7
        if has_sessions and chance.random() < 0.02:
            session = self.sessions[line.broker_id] = ClientSession()  # the client begins anew
        incremental = session.session_id > 0
        if incremental:
            changed = [at for at in wanted if session.asked.get(at) != self.positions[at].offset]
            forgotten = [at for at in session.asked if at not in wanted]
        else:
            changed, forgotten = wanted, []
        max_bytes = chance.choice([0, 60, 300, 100_000])
        wait_ms = chance.choice([0, 0, 300, 3000])
        session_of_request = (session.session_id, session.epoch) if has_sessions else (0, -1)
        request = self._request(changed, forgotten, session_of_request, wait_ms, max_bytes)
        for at in forgotten:
            session.asked.pop(at)
            session.told.pop(at, None)
        for at in changed:
            session.asked[at] = self.positions[at].offset
            session.told.setdefault(at, Told())
        if not incremental:
            session.asked = {at: self.positions[at].offset for at in wanted}
            session.told = {at: Told() for at in wanted}
        deadline_ms = max(self.world.now_ms, line.muted_until_ms) + wait_ms
        self.under_way[line.broker_id] = UnderWay(deadline_ms, max_bytes, dict(session.asked))
        positions = {at: (self.positions[at].topic_id, self.positions[at].generation) for at in wanted}
        line.request(request, self.version, lambda a: self._heard(line, session, incremental, positions, a))

    def _request(
        self,
        changed: list[TopicPartition],
        forgotten: list[TopicPartition],
        session: tuple[int, int],
        wait_ms: int,
        max_bytes: int,
    ) -> Any:
        ids = {name: topic_id for topic_id, name in self.names.items()}
        request = fetch(
            *((at[0], at[1], self.positions[at].offset) for at in changed),
            partition_max=self.partition_max,
            max_bytes=max_bytes,
            max_wait_ms=wait_ms,
            session=session,
            rack=self.rack,
            topic_ids=ids,
            version=self.version,
        )
        request.forgotten_topics_data = [ForgottenTopic(at[0], ids[at[0]], [at[1]]) for at in forgotten]
        return request

    def _heard(
        self,
        line: Line,
        session: ClientSession,
        incremental: bool,
        positions: dict[TopicPartition, tuple[bytes, int]],
        answer: Any,
    ) -> None:
        max_bytes = self.under_way.pop(line.broker_id).max_bytes
        if answer.error_code:
            assert answer.error_code in (E.FETCH_SESSION_ID_NOT_FOUND, E.INVALID_FETCH_SESSION_EPOCH), answer.error_code
            assert incremental and not answer.responses
            evicts = self.world.cluster.state.config.get(-1, "max.incremental.fetch.session.cache.slots") < 100
            assert evicts, "a fetch session got lost"
            self.sessions[line.broker_id] = ClientSession()
            return
        throttled = getattr(answer, "throttle_time_ms", 0) > 0
        by_id = self.version >= 13
        found = {
            (self.names[bytes(topic.topic_id)] if by_id else topic.topic, data.partition_index): data
            for topic in answer.responses
            for data in topic.partitions
        }
        if throttled:
            assert not found, "T-4: a throttled fetch answers nothing"
        if incremental:
            self._check_session(line, session, found, answer.session_id, throttled)
        else:
            assert throttled or set(found) == set(positions), "a full fetch answers every partition"
            session.session_id = answer.session_id
        session.epoch = session.epoch + 1 if session.session_id else 0
        self._check_sizes(found, max_bytes)
        for at, data in found.items():
            topic_id, generation = positions.get(at, (b"", 0))
            if at in self.positions and self.positions[at].topic_id == topic_id:
                self._take(line, session, at, generation, data)

    def _check_session(
        self, line: Line, session: ClientSession, found: dict[TopicPartition, Any], session_id: int, throttled: bool
    ) -> None:
        """S-6: what an incremental answer leaves out has nothing to tell; the session holds what the client thinks."""
        if not session.asked:
            session.session_id = 0
            assert session_id == 0, "S-5"
            return
        assert session_id == session.session_id, f"session {session.session_id} became {session_id}"
        held = self.world.cluster.state.nodes[line.broker_id].sessions.get(session_id)
        assert held is not None and len(held.partitions) == len(session.asked), (
            f"the session of {self.name} lost partitions"
        )
        if throttled:
            return
        for at, told in session.told.items():
            if at in found:
                continue
            partition = self.world.replica(line.broker_id, *at)
            assert partition is not None and told.offsets is not None, f"{at} was in error and is left out"
            offsets = self._offsets(partition)
            assert offsets == told.offsets, f"S-6: {at} is left out, was {told.offsets}, is {offsets}"

    def _offsets(self, partition: Partition) -> tuple[int, int]:
        log = partition.log
        if self.world.semantics == "kip" and not partition.is_leader:
            return log.high_watermark, log.log_start_offset
        return min(log.high_watermark, log.log_end_offset), log.log_start_offset

    def _check_sizes(self, found: dict[TopicPartition, Any], max_bytes: int) -> None:
        """X-3."""
        if self.version < 3:
            return
        partition_max = self.partition_max
        limits = partition_max, max_bytes
        first = 0
        total = 0
        for data in found.values():
            size = len(data.records or b"")
            if not size:
                continue
            first_batch = read_header(bytes(data.records)).size if size >= 61 else 0
            first = first or max(first_batch, 1)
            alone = first_batch if total == 0 else 0
            assert size <= max(min(partition_max, max_bytes - total), alone), f"X-3: {size} bytes, limits {limits}"
            total += size
        assert total <= max(max_bytes, first), f"X-3: {total} bytes in all, limits {limits}"

    def _take(self, line: Line, session: ClientSession, at: TopicPartition, generation: int, data: Any) -> None:
        position = self.positions[at]
        told = session.told.get(at)
        if data.error_code:
            if told is not None:
                told.offsets = None
            self._failed(line, at, data.error_code)
            return
        if told is not None:
            told.offsets = data.high_watermark, data.log_start_offset
        if data.preferred_read_replica >= 0:
            self._sent_elsewhere(at, data)
            return
        history = self.world.truth.histories[position.topic_id, at[1]]
        partition = self.world.replica(line.broker_id, *at)
        if partition is not None:
            self.world.truth.learn(partition)
        if history.generation != generation:
            position.offset, position.generation = 0, history.generation  # what it read is no longer true
            return
        if data.records:
            position.offset = self._read(at, position.offset, data)

    def _read(self, at: TopicPartition, offset: int, data: Any) -> int:
        """The position behind the batches of an answer: no committed record is skipped, none comes twice (X-4)."""
        history = self.world.truth.histories[self.positions[at].topic_id, at[1]]
        records = bytes(data.records)
        for found in batches(records[: complete_bytes(records)]):
            header = found.header
            assert header.next_offset > offset, f"X-4: {history.name}: {header.base_offset} lies before {offset}"
            assert header.next_offset <= data.high_watermark, (
                f"X-4: {history.name}: {header} above {data.high_watermark}"
            )
            assert header.base_offset <= offset or history.compacted, (
                f"{history.name}: {offset} to {header.base_offset} skipped"
            )
            if history.unclean:
                pass  # an older replica may still show what an unclean election has undone
            else:
                history.check_batch(header)
            if history.compacted:
                assert [r.offset for r in records_of(found.view)] == sorted({r.offset for r in records_of(found.view)})
            offset = header.next_offset
        return offset

    def _sent_elsewhere(self, at: TopicPartition, data: Any) -> None:
        """N-3, N-4: a replica in the client's rack, alive and in sync."""
        preferred = data.preferred_read_replica
        state = self.world.image.partition(*at)
        assert not data.records and self.rack
        assert state is not None and preferred in state.isr, f"N-3: {preferred} is preferred, the ISR is {state}"
        assert self.world.image.brokers[preferred].rack == self.rack and self.world.image.is_alive(preferred)
        self.positions[at].broker_id = preferred

    def _failed(self, line: Line, at: TopicPartition, error: int) -> None:
        position = self.positions[at]
        partition = self.world.replica(line.broker_id, *at)
        history = self.world.truth.histories[position.topic_id, at[1]]
        if error == E.OFFSET_OUT_OF_RANGE and partition is not None and partition.is_leader:
            start = partition.log.log_start_offset
            assert position.offset < start or history.unclean, f"{history.name}: {position.offset} is out of range"
            position.offset, position.generation = start, history.generation
        elif error == E.OFFSET_OUT_OF_RANGE and partition is not None:
            log = partition.log
            assert not log.log_start_offset <= position.offset <= log.log_end_offset or history.unclean
        else:
            allowed = {
                E.NOT_LEADER_OR_FOLLOWER,
                E.UNKNOWN_TOPIC_OR_PARTITION,
                E.UNKNOWN_TOPIC_ID,
                E.INCONSISTENT_TOPIC_ID,
            }
            if self.world.semantics == "kip":
                allowed.add(E.OFFSET_NOT_AVAILABLE)
            assert error in allowed, f"{history.name}: error {error}"
        self._ask_leader(at)

    def check(self) -> None:
        """A fetch that can be answered is not parked (F-29), and none waits longer than it asked for."""
        for broker_id, waiting in self.under_way.items():
            line = self.lines[broker_id]
            if not line.is_open or line.slow:
                continue
            assert self.world.now_ms <= waiting.deadline_ms, f"{line.name}: not answered at {waiting.deadline_ms}"
            if line.connection.parked is None:
                continue
            for at, offset in waiting.partitions.items():
                partition = self.world.replica(broker_id, *at)
                if partition is None or self.world.truth.of(partition).compacted:
                    continue
                log = partition.log
                end = min(log.high_watermark, log.log_end_offset)
                ready = log.log_start_offset <= offset < end and waiting.max_bytes > 0
                assert not ready, f"F-29: {line.name}: {at} can be read from {offset} to {end} and is parked"


class Asker(Client):
    """Single questions whose answers follow from what the replica holds: fetch at any offset, list offsets, delete records."""

    def act(self) -> None:
        self.world.chance.choice([self._probe, self._probe, self._list, self._delete])()

    def _free_line(self, at: TopicPartition, anywhere: bool) -> tuple[Line, Partition] | None:
        chance = self.world.chance
        state = self.world.image.partition(*at)
        broker_id = chance.choice(state.replicas) if anywhere else state.leader
        partition = self.world.replica(broker_id, *at) if broker_id >= 0 else None
        line = None if partition is None else self.line(broker_id)
        return (line, partition) if line is not None and partition is not None and line.is_idle else None

    def _probe(self) -> None:
        """F-15 to F-17, D1 to D3."""
        at = self.some_partition()
        if (found := self._free_line(at, anywhere=True)) is None:
            return
        line, partition = found
        log = partition.log
        offset = self.world.chance.randint(max(0, log.log_start_offset - 3), log.log_end_offset + 2)
        wanted, bound = self._expected(partition, offset)
        version = 11

        def heard(answer: Any) -> None:
            [(_, data)] = flat(answer)
            assert data.error_code == wanted, f"{partition}: {offset} answers {data.error_code}, not {wanted}"
            if wanted == 0 and not self.world.truth.of(partition).compacted:
                assert bool(data.records) == (offset < bound), f"{partition}: from {offset} below {bound}"

        line.request(fetch((*at, offset), version=version), version, heard)

    def _expected(self, partition: Partition, offset: int) -> tuple[int, int]:
        log = partition.log
        watermark, end = log.high_watermark, log.log_end_offset
        bound = min(watermark, end)
        if offset < log.log_start_offset:
            return E.OFFSET_OUT_OF_RANGE, bound
        if self.world.semantics == "kip":
            follower_heard = not partition.is_leader and end < offset <= watermark
            if follower_heard or watermark < offset <= end:
                return E.OFFSET_NOT_AVAILABLE, bound
        return (E.OFFSET_OUT_OF_RANGE if offset > end else 0), bound

    def _list(self) -> None:
        """L-5, L-8."""
        at = self.some_partition()
        if (found := self._free_line(at, anywhere=False)) is None:
            return
        line, partition = found
        timestamp = self.world.chance.choice([LATEST, EARLIEST])
        log = partition.log
        wanted = (0, log.high_watermark if timestamp == LATEST else log.log_start_offset)
        if timestamp == LATEST and log.high_watermark < partition.epoch_start_offset:
            wanted = (E.OFFSET_NOT_AVAILABLE, -1)

        def heard(answer: Any) -> None:
            told = answer.topics[0].partitions[0]
            assert (told.error_code, told.offset) == wanted, (
                f"{partition}: {timestamp} is at {told.offset}, not {wanted}"
            )

        asked = [ListOffsetsTopic(at[0], [ListOffsetsPartition(at[1], -1, timestamp)])]
        line.request(ListOffsetsRequest(-1, 0, asked), 7, heard)

    def _delete(self) -> None:
        """L-11: what was deleted is gone at once at the leader."""
        at = self.some_partition()
        if self.world.chance.random() > 0.3 or (found := self._free_line(at, anywhere=False)) is None:
            return
        line, partition = found
        log = partition.log
        offset = self.world.chance.randint(log.log_start_offset, log.high_watermark)
        deletes, start = partition.deletes, max(offset, log.log_start_offset)

        def heard(answer: Any) -> None:
            told = answer.topics[0].partitions[0]
            if not deletes:
                assert told.error_code == E.POLICY_VIOLATION, told.error_code
                return
            assert told.error_code in (0, *UNSURE), told.error_code
            if told.error_code == 0:
                assert told.low_watermark >= offset, (
                    f"{partition}: deleted below {told.low_watermark}, asked for {offset}"
                )

        asked = [DeleteRecordsTopic(at[0], [DeleteRecordsPartition(at[1], offset)])]
        line.request(DeleteRecordsRequest(asked, 1000), 1, heard)
        moved = deletes and partition.is_leader
        assert not moved or log.log_start_offset >= start, f"{partition}: log start {log.log_start_offset}, not {start}"
