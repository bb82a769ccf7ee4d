"""Producers with every acks; idempotent ones resend a batch until it is acknowledged, also to the next process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafkaproto.broker.replication.partition import Partition
from kafkaproto.records.batch import BatchHeader, Compression, NewRecord, build_batch, read_header
from tests.simulation.client import MOVED, UNSURE, Client, E, TopicPartition
from tests.simulation.line import Line
from tests.simulation.world import World
from tests.support.wire import produce, produced

ALL = -1


@dataclass(slots=True)
class Sequence:
    """The state of an idempotent producer for one partition: the batch in flight and its last acknowledged batches."""

    next: int = 0
    pending: bytes | None = None
    done: list[tuple[bytes, int]] = field(default_factory=list)
    line: Line | None = None
    """The connection of the request in flight.

    As in Kafka's clients, a batch is in flight only once: a late duplicate could arrive after it is forgotten.
    """


class Producer(Client):
    """Produces with every acks; idempotent ones (acks=all only) resend a batch until it is acknowledged."""

    def __init__(self, world: World, name: str, idempotent: bool, client_id: str | None = "test") -> None:
        super().__init__(world, name, client_id)
        self.idempotent = idempotent
        self.producer_id = -1
        self.sequences: dict[tuple[bytes, int], Sequence] = {}
        self.ids: dict[str, bytes] = {}
        """The id of the topic that it last wrote to, by name."""
        self._count = 0

    def act(self) -> None:
        if self.idempotent and self.producer_id < 0:
            self.producer_id = self.world.new_producer_id()
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
        data = self.batch(at[0])
        spoilt = acks != 0 and chance.random() < 0.1
        if spoilt:
            data = data[:-1] + bytes([data[-1] ^ 1])
        request = produce(*_split(at, data), acks=acks, timeout_ms=chance.choice([0, 100, 1500]))
        line.request(
            request,
            chance.choice([3, 7, 8, 9, 11]),
            lambda answer: self._on_response(line, at, acks, data, spoilt, answer),
        )

    def batch(self, topic: str, base_sequence: int = -1) -> bytes:
        """Return a batch of one to four new records with repeated keys, and with tombstones for a compacted topic."""
        chance = self.world.chance
        dies = 0.2 if "compact" in self.world.topics[topic].configs.get("cleanup.policy", "") else 0.0
        records: list[NewRecord] = []
        for _ in range(chance.choice([1, 1, 2, 4])):
            self._count += 1
            value = f"{self.name}:{self._count}:".encode() + b"x" * chance.choice([0, 10, 150])
            is_last = dies > 0 and chance.random() < dies
            records.append(NewRecord(None if is_last else value, b"k%d" % chance.randrange(5), self.world.now_ms))
        codec = chance.choice([Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4])
        producer_fields = {} if base_sequence < 0 else {"producer_id": self.producer_id, "producer_epoch": 0}
        return build_batch(records, compression=codec, base_sequence=base_sequence, **producer_fields)

    def _on_response(self, line: Line, at: TopicPartition, acks: int, data: bytes, spoilt: bool, answer: Any) -> None:
        partition_response = produced(answer)
        partition = self.world.replica(line.broker_id, *at)
        if partition_response.error_code == E.KAFKA_STORAGE_ERROR:
            assert self.world.refuses, "the disk is well"
            return
        assert partition_response.error_code or acks != 1 or not self.world.refuses, (
            "acknowledged a batch that the disk refused"
        )
        if partition_response.error_code:
            allowed = {E.CORRUPT_MESSAGE} if spoilt else set() if acks == 1 else UNSURE
            assert partition_response.error_code in allowed | MOVED, (
                f"error {partition_response.error_code} for a {'spoilt' if spoilt else 'good'} batch"
            )
            return
        assert not spoilt, "a batch with a wrong checksum was accepted"
        if acks == ALL and partition is not None:
            self._acknowledged(partition, partition_response, data)

    def _acknowledged(self, partition: Partition, partition_response: Any, data: bytes) -> BatchHeader:
        header = read_header(data)
        assert len(partition.isr) >= partition.effective_min_isr, (
            f"{partition}: acknowledged with ISR {set(partition.isr)}"
        )
        self.world.truth.acknowledged(
            partition, partition_response.base_offset, header.last_offset_delta + 1, header.crc
        )
        return header

    # ---- idempotent ------------------------------------------------------------------------------------------------------------

    def _send_in_sequence(self, line: Line, at: TopicPartition) -> None:
        topic = self.world.image.topics[at[0]]
        before = self.sequences.get((self.ids.get(at[0], b""), at[1]))
        if self.ids.get(at[0]) != topic.topic_id and before is not None and before.line is not None:
            self._leave()
            return
        self.ids[at[0]] = topic.topic_id
        state = self.sequences.setdefault((topic.topic_id, at[1]), Sequence())
        if state.line is not None and state.line.is_open:
            return
        again = self.world.chance.random() < 0.2 and state.pending is None and bool(state.done)
        expected_base: int | None = None
        if again:
            data, expected_base = self.world.chance.choice(state.done[-5:])
        else:
            if state.pending is None:
                state.pending = self.batch(at[0], state.next)
            data = state.pending
        request = produce(*_split(at, data), acks=ALL, timeout_ms=self.world.chance.choice([100, 1500]))
        state.line = line
        line.request(
            request, 9, lambda answer: self._on_response_in_sequence(line, at, state, data, expected_base, answer)
        )

    def _on_response_in_sequence(
        self, line: Line, at: TopicPartition, state: Sequence, data: bytes, expected_base: int | None, answer: Any
    ) -> None:
        state.line = None
        partition_response = produced(answer)
        partition = self.world.replica(line.broker_id, *at)
        if partition is not None and self.sequences.get((partition.topic_id, at[1])) is not state:
            self._leave()
            return
        if partition_response.error_code in UNSURE or (
            self.world.refuses and partition_response.error_code == E.KAFKA_STORAGE_ERROR
        ):
            return
        if partition is None or self._may_be_forgotten(partition):
            state.next, state.pending = 0, None
            state.done.clear()
            if partition_response.error_code:  # its record was lost
                self._leave()
            elif expected_base is None:
                state.next = read_header(data).base_sequence + read_header(data).last_offset_delta + 1
            return
        assert partition_response.error_code == 0, f"error {partition_response.error_code} for a batch in sequence"
        if expected_base is not None:
            assert partition_response.base_offset == expected_base, (
                f"a duplicate of {expected_base} was appended at {partition_response.base_offset}"
            )
            return
        header = self._acknowledged(partition, partition_response, data)
        state.next = header.base_sequence + header.last_offset_delta + 1
        state.pending = None
        state.done.append((data, partition_response.base_offset))

    def _leave(self) -> None:
        """Continue as another producer after a topic was deleted: a batch in flight may reach a new topic of the same name."""
        self.producer_id = -1
        self.sequences.clear()
        self.ids.clear()

    def _may_be_forgotten(self, partition: Partition) -> bool:
        """Return whether a replica may not know this producer: it learns producers from the batches that are left."""
        history = self.world.truth.of(partition)
        return history.unclean or history.compacted or partition.log.log_start_offset > 0


def _split(at: TopicPartition, data: bytes) -> tuple[str, bytes, int]:
    return at[0], data, at[1]
