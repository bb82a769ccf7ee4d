"""Consumers with fetch sessions, old and new: they read everything and never skip or repeat a committed record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.messages.fetch import ForgottenTopic
from kafkaproto.records.batch import batches, complete_bytes, read_header
from kafkaproto.records.batch import records as records_of
from tests.simulation.client import Client, E, TopicPartition
from tests.simulation.line import Line
from tests.simulation.truth import History
from tests.simulation.world import World
from tests.support.wire import fetch


@dataclass(slots=True)
class LastResponse:
    """The last response of a session about a partition. None: no valid value, so that the broker must send the partition again."""

    offsets: tuple[int, int] | None = None


@dataclass(slots=True)
class ClientSession:
    """The client's side of a fetch session with one broker. offsets: the positions that the broker has."""

    session_id: int = 0
    epoch: int = 0
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    last_responses: dict[TopicPartition, LastResponse] = field(default_factory=dict)


@dataclass(slots=True)
class Position:
    """The position of a consumer. broker_id: the broker it fetches from. generation: the generation of the history that the consumer reads."""

    offset: int
    broker_id: int
    generation: int
    topic_id: bytes


@dataclass(slots=True)
class UnderWay:
    """A fetch without a response yet.

    The broker handles the fetch when it arrives, or after the client has read the previous response; then the fetch may wait until its deadline.
    """

    handled_ms: int
    wait_ms: int
    max_bytes: int
    partitions: dict[TopicPartition, int]


class Consumer(Client):
    """Reads everything, from leaders or the closest replicas, and never skips or repeats a committed record."""

    isolation = 0

    def __init__(self, world: World, name: str, version: int, rack: str = "", client_id: str | None = "test") -> None:
        super().__init__(world, name, client_id)
        self.version = version
        self.rack = rack
        self.positions: dict[TopicPartition, Position] = {}
        self.sessions: dict[int, ClientSession] = {}
        self.under_way: dict[int, UnderWay] = {}
        self.names: dict[bytes, str] = {}
        """All topics that ever existed, by id; the newest of a name is last."""
        self.seen: dict[str, dict[bytes | None, list[int]]] = {}
        """For compacted partitions, by name: maps each key to the offsets at which the consumer read the key, ascending."""
        self.partition_max = world.chance.choice([60, 300, 100_000])

    def connected(self, broker_id: int) -> None:
        self.under_way.pop(broker_id, None)
        self.sessions[broker_id] = ClientSession()

    def act(self) -> None:
        self._look_for_topics()
        by_broker: dict[int, list[TopicPartition]] = {}
        for at, position in self.positions.items():
            if position.broker_id < 0 or position.broker_id not in self.world.running():
                self._ask_leader(at)
            by_broker.setdefault(position.broker_id, []).append(at)
        by_broker.pop(-1, None)
        if by_broker:
            broker_id = self.world.chance.choice(sorted(by_broker))
            line = self.line(broker_id)
            if line is not None and not line.expected:
                self._fetch(line, by_broker[broker_id])

    def end_of(self, log: ReplicaLog) -> int:
        """Return the offset below which this consumer can read a replica."""
        return min(log.high_watermark, log.log_end_offset)

    def _look_for_topics(self) -> None:
        topics = self.world.topics
        for at in [
            at for at, p in self.positions.items() if at[0] not in topics or topics[at[0]].topic_id != p.topic_id
        ]:
            del self.positions[at]
            for broker_id in self.sessions:  # requested by name, it could be mistaken for the next topic of that name
                self.sessions[broker_id] = ClientSession()
        for name, topic in topics.items():
            self.names[topic.topic_id] = name
            for state in topic.partitions:
                if (name, state.index) not in self.positions:
                    self.positions[name, state.index] = Position(0, state.leader, 0, topic.topic_id)

    def _ask_leader(self, at: TopicPartition) -> None:
        self.positions[at].broker_id = self.world.image.leader_of(*at)[0]

    def _fetch(self, line: Line, places: list[TopicPartition]) -> None:
        chance = self.world.chance
        session = self.sessions[line.broker_id]
        has_sessions = self.version >= 7
        if has_sessions and chance.random() < 0.02:
            session = self.sessions[line.broker_id] = ClientSession()  # the client starts a new session
        incremental = session.session_id > 0
        if incremental:
            changed = [at for at in places if session.offsets.get(at) != self.positions[at].offset]
            forgotten = [at for at in session.offsets if at not in places]
        else:
            changed, forgotten = places, []
        max_bytes = chance.choice([0, 60, 300, 100_000])
        wait_ms = chance.choice([0, 0, 300, 3000])
        session_of_request = (session.session_id, session.epoch) if has_sessions else (0, -1)
        request = self._request(changed, forgotten, session_of_request, wait_ms, max_bytes)
        for at in forgotten:
            session.offsets.pop(at)
            session.last_responses.pop(at, None)
        for at in changed:
            session.offsets[at] = self.positions[at].offset
            session.last_responses.setdefault(at, LastResponse())
        if not incremental:
            session.offsets = {at: self.positions[at].offset for at in places}
            session.last_responses = {at: LastResponse() for at in places}
        self.under_way[line.broker_id] = UnderWay(line.handled_ms, wait_ms, max_bytes, dict(session.offsets))
        positions = {at: (self.positions[at].topic_id, self.positions[at].generation) for at in places}
        line.request(request, self.version, lambda a: self._on_response(line, session, incremental, positions, a))

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
            isolation=self.isolation,
            topic_ids=ids,
            version=self.version,
        )
        request.forgotten_topics_data = [ForgottenTopic(at[0], ids[at[0]], [at[1]]) for at in forgotten]
        return request

    def _on_response(
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
            assert self._may_be_evicted, "the broker lost a fetch session"
            self.sessions[line.broker_id] = ClientSession()
            return
        throttled = getattr(answer, "throttle_time_ms", 0) > 0
        by_id = self.version >= 13
        responses = {
            (self.names[bytes(topic.topic_id)] if by_id else topic.topic, data.partition_index): data
            for topic in answer.responses
            for data in topic.partitions
        }
        if throttled:
            assert not responses, "T-4: a throttled fetch returns no records"
        if incremental:
            self._check_session(line, session, responses, answer.session_id, throttled)
        else:
            assert throttled or set(responses) == set(positions), "a full fetch returns every partition"
            session.session_id = answer.session_id
        session.epoch = session.epoch + 1 if session.session_id else 0
        self._check_sizes(responses, max_bytes)
        for at, data in responses.items():
            topic_id, generation = positions.get(at, (b"", 0))
            if at in self.positions and self.positions[at].topic_id == topic_id:
                self._take(line, session, at, generation, data)

    def _check_session(
        self, line: Line, session: ClientSession, responses: dict[TopicPartition, Any], session_id: int, throttled: bool
    ) -> None:
        """Check that partitions missing from an incremental response are unchanged (S-6)."""
        if not session.offsets:
            session.session_id = 0
            assert session_id == 0, "S-5"
            return
        assert session_id == session.session_id, f"session {session.session_id} became {session_id}"
        broker_session = self.world.cluster.state.nodes[line.broker_id].sessions.get(session_id)
        # While the fetch was parked, another client may have evicted its session. As in Kafka, this fetch completes, and the next gets the error.
        assert broker_session is not None or self._may_be_evicted, f"the session of {self.name} is gone"
        assert broker_session is None or len(broker_session.partitions) == len(session.offsets), (
            f"the session of {self.name} lost partitions"
        )
        if throttled:
            return
        for at, last_response in session.last_responses.items():
            if at in responses:
                continue
            partition = self.world.replica(line.broker_id, *at)
            assert partition is not None and last_response.offsets is not None, f"{at} had an error and is missing"
            offsets = self._offsets(partition)
            assert offsets == last_response.offsets, f"S-6: {at} is missing, was {last_response.offsets}, is {offsets}"

    @property
    def _may_be_evicted(self) -> bool:
        """Return whether the brokers have so few slots that sessions are evicted (S-13)."""
        return self.world.cluster.state.config.get(-1, "max.incremental.fetch.session.cache.slots") < 100

    def _offsets(self, partition: Partition) -> tuple[int, int]:
        log = partition.log
        if self.world.semantics == "kip" and not partition.is_leader:
            return log.high_watermark, log.log_start_offset
        return min(log.high_watermark, log.log_end_offset), log.log_start_offset

    def _check_sizes(self, responses: dict[TopicPartition, Any], max_bytes: int) -> None:
        """Check the size limits of a fetch response (X-3)."""
        if self.version < 3:
            return
        partition_max = self.partition_max
        limits = partition_max, max_bytes
        first = 0
        total = 0
        for data in responses.values():
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
        last_response = session.last_responses.get(at)
        if data.error_code:
            if last_response is not None:
                last_response.offsets = None
            self._failed(line, at, data.error_code)
            return
        if last_response is not None:
            last_response.offsets = data.high_watermark, data.log_start_offset
        if data.preferred_read_replica >= 0:
            self._sent_elsewhere(at, data)
            return
        history = self.world.truth.histories[position.topic_id, at[1]]
        partition = self.world.replica(line.broker_id, *at)
        if partition is not None:
            self.world.truth.learn(partition)
        if history.generation != generation:
            position.offset, position.generation = 0, history.generation  # the records read so far are no longer valid
            return
        if data.records:
            position.offset = self._read(at, position.offset, data)

    def _read(self, at: TopicPartition, offset: int, data: Any) -> int:
        """Return the position after the batches of a response; no committed record is skipped or repeated (X-4)."""
        history = self.world.truth.histories[self.positions[at].topic_id, at[1]]
        records = bytes(data.records)
        for batch in batches(records[: complete_bytes(records)]):
            header = batch.header
            assert header.next_offset > offset, f"X-4: {history.name}: {header.base_offset} lies before {offset}"
            assert header.next_offset <= data.high_watermark, (
                f"X-4: {history.name}: {header} above {data.high_watermark}"
            )
            assert header.base_offset <= offset or history.compacted, (
                f"{history.name}: {offset} to {header.base_offset} skipped"
            )
            if history.unclean:
                pass  # an older replica may still have records that an unclean election has removed
            else:
                history.check_batch(header)
            if history.compacted:
                self.read_keys(history, header.base_offset, batch.view)
            offset = header.next_offset
        return offset

    def read_keys(self, history: History, base_offset: int, batch: memoryview) -> None:
        """Note and check the records of a batch of a compacted partition."""
        offsets_by_key = self.seen.setdefault(history.name, {})
        for record in records_of(batch):
            history.keys.check_record(record)
            offsets = offsets_by_key.setdefault(record.key, [-1])
            assert record.offset > offsets[-1], f"{history.name}: {record.offset} is repeated"
            offsets.append(record.offset)

    def _sent_elsewhere(self, at: TopicPartition, data: Any) -> None:
        """Check that the preferred replica is in the client's rack, alive and in sync (N-3, N-4)."""
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
            is_recreated = partition.topic_id != position.topic_id  # since the fetch was sent
            is_known = position.offset < start or history.unclean or is_recreated
            assert is_known, f"{history.name}: {position.offset} is out of range"
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
        """Check that a fetch that can be answered is not parked (F-29), and that none waits longer than its max wait."""
        for broker_id, waiting in self.under_way.items():
            line = self.lines[broker_id]
            if not line.is_open or line.slow:
                continue
            deadline_ms = max(waiting.handled_ms, line.read_ms) + waiting.wait_ms
            assert self.world.now_ms <= deadline_ms, f"{line.name}: not answered at {deadline_ms}"
            if line.connection.parked is None:
                continue
            for at, offset in waiting.partitions.items():
                partition = self.world.replica(broker_id, *at)
                if partition is None or self.world.truth.of(partition).compacted:
                    continue
                log = partition.log
                end = self.end_of(log)
                ready = log.log_start_offset <= offset < end and waiting.max_bytes > 0
                assert not ready, f"F-29: {line.name}: {at} can be read from {offset} to {end} and is parked"
