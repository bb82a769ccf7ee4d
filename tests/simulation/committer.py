"""Whoever keeps offsets in a group: what was committed is told again, by whichever broker speaks for the group, in whichever process."""

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
    """kept: by topic id and index, what may be told: what was acknowledged last, and what was sent since and not refused."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.kept: dict[tuple[bytes, int], set[int]] = {}

    def act(self) -> None:
        at = self.some_partition()
        try:
            broker_id = self.world.cluster.state.coordinator_of(self.name)
        except KafkaError:
            return  # nobody speaks for the group at the moment
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
        kept = self.kept.setdefault((topic_id, at[1]), {NOTHING})
        is_new = offset not in kept
        kept.add(offset)

        def heard(answer: Any) -> None:
            error = answer.topics[0].partitions[0].error_code
            if error == 0:
                assert not self.world.refuses, "acknowledged what the disk did not take"
                kept.clear()
                kept.add(offset)
                return
            # NOT_COORDINATOR is also what Kafka makes of a log that cannot be written.
            allowed = {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.UNKNOWN_TOPIC_OR_PARTITION}
            assert error in allowed, f"error {error} for a commit"
            if is_new:
                kept.discard(offset)

        partition = OffsetCommitRequestPartition(at[1], committed_offset=offset)
        request = OffsetCommitRequest(self.name, topics=[OffsetCommitRequestTopic(at[0], partitions=[partition])])
        line.request(request, 8, heard)

    def _ask(self, line: Line, at: TopicPartition, topic_id: bytes) -> None:
        def heard(answer: Any) -> None:
            topic = self.world.image.topics.get(at[0])
            if answer.error_code or topic is None or topic.topic_id != topic_id:
                assert answer.error_code in (0, E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE), answer.error_code
                return
            told = answer.topics[0].partitions[0].committed_offset
            kept = self.kept.get((topic_id, at[1]), {NOTHING})
            assert told in kept, f"{at[0]}-{at[1]}: {told} is told, {sorted(kept)} was committed"

        line.request(OffsetFetchRequest(self.name, [OffsetFetchRequestTopic(at[0], [at[1]])]), 5, heard)
