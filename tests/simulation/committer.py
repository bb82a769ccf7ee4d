"""A client that commits offsets in a group and reads them back from any coordinator, also after a restart."""

from __future__ import annotations

from typing import Any

from kafkaproto.broker.errors import KafkaError
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from tests.simulation.client import Client, E, TopicPartition
from tests.simulation.line import Line
from tests.simulation.world import World

NOTHING = -1


class Committer(Client):
    """Commits and fetches offsets.

    kept: by topic id and index, the valid responses: the last acknowledged offset and later ones not rejected. before: those before the last
    acknowledgement. The coordinator in Java returns them, too, after it moved, until the high watermark of the new leader has advanced (GC-66).
    """

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.kept: dict[tuple[bytes, int], set[int]] = {}
        self.before: dict[tuple[bytes, int], set[int]] = {}

    def act(self) -> None:
        at = self.some_partition()
        try:
            broker_id = self.world.cluster.state.coordinator_of(self.name)
        except KafkaError:
            return  # the group has no coordinator at the moment
        line = self.line(broker_id)
        if line is None or line.expected:
            return
        topic_id = self.world.image.topics[at[0]].topic_id
        if self.world.chance.random() < 0.6:
            self._commit(line, at, topic_id)
        else:
            self._ask(line, at, topic_id)

    def _commit(self, line: Line, at: TopicPartition, topic_id: bytes) -> None:
        offset = self.world.chance.randrange(1000)
        possible_offsets = self.kept.setdefault((topic_id, at[1]), {NOTHING})
        is_new = offset not in possible_offsets
        possible_offsets.add(offset)
        refused = self.world.refuses

        def on_response(answer: Any) -> None:
            error = answer.topics[0].partitions[0].error_code
            if error == 0:
                # The disk may have failed after the write, while the response waited for the replicas.
                assert not (refused and self.world.refuses), "acknowledged an offset that the disk refused"
                self.before[topic_id, at[1]] = {*possible_offsets} - {offset}
                possible_offsets.clear()
                possible_offsets.add(offset)
                return
            # Kafka returns NOT_COORDINATOR also if the log cannot be written. A commit that was not replicated in time, or whose
            # coordinator moved meanwhile, may count or not.
            maybe = {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.REQUEST_TIMED_OUT}
            assert error in {*maybe, E.UNKNOWN_TOPIC_OR_PARTITION}, f"error {error} for a commit"
            if is_new and error not in maybe:
                possible_offsets.discard(offset)

        partition = OffsetCommitRequestPartition(at[1], committed_offset=offset)
        request = OffsetCommitRequest(self.name, topics=[OffsetCommitRequestTopic(at[0], partitions=[partition])])
        line.request(request, 8, on_response)

    def _ask(self, line: Line, at: TopicPartition, topic_id: bytes) -> None:
        nodes = self.world.cluster.state.nodes
        reads_high_watermark = any(node.has_groups and node.groups.is_new_coordinator for node in nodes)

        def on_response(answer: Any) -> None:
            topic = self.world.image.topics.get(at[0])
            if answer.error_code or topic is None or topic.topic_id != topic_id:
                assert answer.error_code in (0, E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE), answer.error_code
                return
            committed_offset = answer.topics[0].partitions[0].committed_offset
            possible_offsets = self.kept.get((topic_id, at[1]), {NOTHING})
            if reads_high_watermark:
                possible_offsets = possible_offsets | self.before.get((topic_id, at[1]), set())
            assert committed_offset in possible_offsets, (
                f"{at[0]}-{at[1]}: the response has {committed_offset}, {sorted(possible_offsets)} was committed"
            )

        line.request(OffsetFetchRequest(self.name, [OffsetFetchRequestTopic(at[0], [at[1]])]), 5, on_response)
