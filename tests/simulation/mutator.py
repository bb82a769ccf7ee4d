"""A client that creates and deletes partitions until the controller throttles it, in old and new versions (Q-18)."""

from __future__ import annotations

from typing import Any

from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.simulation.client import Client, E
from tests.simulation.world import MOST_TOPICS

MOST_PARTITIONS = 2
ALLOWED = {
    0,
    E.THROTTLING_QUOTA_EXCEEDED,
    E.TOPIC_ALREADY_EXISTS,
    E.UNKNOWN_TOPIC_OR_PARTITION,
    E.INVALID_REPLICATION_FACTOR,
    E.INVALID_PARTITIONS,
}


class Mutator(Client):
    """Creates and deletes partitions. Requests beyond the limit of topics use validate_only, which is charged all the same."""

    def act(self) -> None:
        line = self.line(self.world.chance.choice(self.world.running()))
        if line is None or not line.is_idle:
            return
        request, version = self.world.chance.choice([self._create, self._create, self._delete, self._extend])()
        refuses = self.world.refuses

        def on_response(answer: Any) -> None:
            results = next(
                getattr(answer, name) for name in ("topics", "responses", "results") if hasattr(answer, name)
            )
            for result in results:
                allowed = result.error_code in ALLOWED or (refuses and result.error_code == E.KAFKA_STORAGE_ERROR)
                assert allowed, f"{result}"

        line.request(request, version, on_response)

    def _create(self) -> tuple[Any, int]:
        chance = self.world.chance
        names = chance.sample(["made-0", "made-1", "made-2"], chance.choice([1, 2, 3]))
        topics = [CreatableTopic(name, 1, chance.choice([1, 2, 3])) for name in names]
        tries = len(self.world.topics) + len(topics) > MOST_TOPICS - 1 or chance.random() < 0.5
        if tries:
            for topic in topics:
                topic.num_partitions = chance.choice([1, 3, 10])
        return CreateTopicsRequest(topics, validate_only=tries), chance.choice([1, 2, 4, 5, 6, 7, 7])

    def _delete(self) -> tuple[Any, int]:
        chance = self.world.chance
        names = [name for name in sorted(self.world.topics) if name.startswith("made")][:2]
        names.append("made-none")
        version = chance.choice([0, 1, 4, 5, 6, 6])
        if version < 6:
            return DeleteTopicsRequest(topic_names=names, timeout_ms=1000), version
        return DeleteTopicsRequest([DeleteTopicState(name) for name in names], timeout_ms=1000), version

    def _extend(self) -> tuple[Any, int]:
        chance = self.world.chance
        name, topic = chance.choice(sorted(self.world.topics.items()))
        count = len(topic.partitions) + chance.choice([0, 1, 1, 5])
        tries = not name.startswith("made") or count > MOST_PARTITIONS
        topics = [CreatePartitionsTopic(name, count, None), CreatePartitionsTopic("made-none", 3, None)]
        return CreatePartitionsRequest(topics, 1000, validate_only=tries), chance.choice([0, 2, 3, 3])
