"""The methods of a test cluster for topics and records. Tests can call them without a Kafka client."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

from kafkaproto.broker.cluster import topics_left
from kafkaproto.broker.config.values import as_text, check_topic_settings, topic_setting
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import PartitionState
from kafkaproto.broker.testing import producing, records
from kafkaproto.broker.testing.arguments import check_int, check_mapping, check_text, nearest, short_repr, with_hint
from kafkaproto.broker.testing.base import Base
from kafkaproto.broker.testing.options import Topics
from kafkaproto.broker.testing.producing import Given
from kafkaproto.broker.testing.records import StoredRecord
from kafkaproto.broker.testing.tracebacks import is_hidden, without_frames_of_the_broker
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.compression import Compression

__tracebackhide__ = is_hidden


class TopicMethods(Base):
    """A base class of test clusters, with the methods for topics and records."""

    _topics: Topics

    def topics(self, *, internal: bool = False) -> dict[str, int]:
        """Return the number of partitions of each topic, by name. internal: whether to include internal topics such as `__consumer_offsets`."""

        def find() -> dict[str, int]:
            image = self.state.controller.image
            return {
                topic.name: len(topic.partitions) for topic in image.topics.values() if internal or not topic.internal
            }

        return self._run(find)

    @with_hint
    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = -1,
        configs: Mapping[str, object] | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """Create a topic.

        replication_factor: -1 stands for the setting `default.replication.factor`. configs: the topic's own settings, such as
        {"retention.ms": 1000}. assignment: maps partitions to broker ids, the preferred leader first; if given, `partitions` and
        `replication_factor` are ignored. Raises KafkaError with the code and the message of a CreateTopics response.
        """
        _check_topic("", name, partitions, replication_factor, configs, assignment)
        texts = {key: as_text(value) or "" for key, value in (configs or {}).items()}

        counts = (-1, -1) if assignment else (partitions, replication_factor)

        def create() -> None:
            controller = self.state.controller
            controller.put_topic(controller.plan_topic(name, *counts, assignment, texts))

        self._run(create)

    def create_topics(self) -> None:
        """Create the topics that were passed to `cluster()`, except those that already exist in the cluster's data directory.

        Raises KafkaError, whose text names the topic, if a topic cannot be created.
        """
        for name, partitions in self._topics.items():
            if name in self._run(lambda: topics_left(self.state) & self.state.controller.image.topics.keys()):
                continue
            try:
                if isinstance(partitions, int):
                    self.create_topic(name, partitions)
                else:
                    self.create_topic(name, **partitions)  # type: ignore[arg-type]
            except KafkaError as error:
                raise KafkaError(error.error_code, f"topics[{name!r}]: {error}") from None

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if there is no such topic."""

        check_text("name", name, "orders")

        def delete() -> None:
            self._known(name)
            self.state.controller.delete_topic(name)

        self._run(delete)

    def alter_topic(self, name: str, **configs: object) -> None:
        """Change settings of a topic. The value None removes a setting, so that the topic uses the broker's value again.

        Write dots in the names of settings as underscores: `alter_topic("t", max_message_bytes="2000")`. Raises ConfigError for an unknown setting
        or an invalid value, KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if there is no such topic.
        """
        check_text("name", name, "orders")
        values = {key.replace("_", "."): as_text(value) for key, value in configs.items()}
        with without_frames_of_the_broker():
            for key in values:
                topic_setting(key)
            check_topic_settings(_without_removed(values))

        def alter() -> None:
            self._known(name)
            topic = self.state.controller.image.topics[name]
            self.state.controller.set_topic_configs(name, _without_removed({**topic.configs, **values}))

        self._run(alter)

    def _known(self, topic: str) -> None:
        """Check that a topic exists. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if not."""
        if topic not in self.state.controller.image.topics:
            raise records.unknown_topic(self.state, topic)

    def partition(self, topic: str, index: int) -> PartitionState:
        """Return leader, leader epoch, replicas and in-sync replicas of partition `index` of a topic.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if there is no such partition.
        """
        check_text("topic", topic, "orders")
        check_int("index", index, example=0)

        def find() -> PartitionState:
            state = self.state.controller.image.partition(topic, index)
            if state is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"There is no partition {topic}-{index}: the topic does not exist or has fewer partitions.",
                )
            return state

        return self._run(find)

    def produce(
        self,
        topic: str,
        values: Sequence[Given],
        partition: int | None = None,
        compression: Compression = Compression.NONE,
    ) -> list[tuple[int, int]]:
        """Write records as a producer with acks=1 does, and return (partition, offset) of each. No client library is needed.

        values: one item for each record: its value (bytes, text or None), a pair (key, value) of these types, or a `NewRecord`. partition: None to
        choose one by key, and round-robin for records without a key. compression: the codec with which the batches are compressed. The records of a
        partition are written in one batch, or in several if `max.message.bytes` or `segment.bytes` demands it. A topic that does not exist is created
        if `auto.create.topics.enable` allows it.

        Raises TypeError for values of other types, and KafkaError, for example MESSAGE_TOO_LARGE (10) for a value that no batch can hold. After these
        errors nothing is written. Only after KAFKA_STORAGE_ERROR (56), because the store is full, may some batches be written already.
        """
        check_text("topic", topic, "orders")
        if partition is not None:
            check_int("partition", partition, example=0)
        producing.check_values(values)
        producing.check_compression(compression)
        return self._run(lambda: producing.produce(self.state, topic, values, partition, compression))

    def records(self, topic: str, partition: int | None = None) -> list[StoredRecord]:
        """Return all records of a topic, or of one partition, as the leaders hold them, committed or not.

        partition: None for all partitions. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if there is no such topic or partition, and
        LEADER_NOT_AVAILABLE (5) if a partition has no leader.
        """
        check_text("topic", topic, "orders")
        if partition is not None:
            check_int("partition", partition, example=0)
        return self._run(lambda: records.stored(self.state, topic, partition))

    def run_retention(self) -> None:
        """Delete expired records of every replica now, instead of at the next `log.retention.check.interval.ms`."""
        self._run(lambda: self.state.log_manager.retention.run(self.state.actions.now_ms))

    def compact(self, topic: str, partition: int) -> None:
        """Compact every replica of a partition now, even if its log has too few new records for a regular compaction.

        Compacts the oldest segments, up to the first segment that may not be compacted now: the active segment, a segment that ends above the last
        stable offset, or a segment that was not compacted yet and has a record younger than `min.compaction.lag.ms`.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if there is no such partition, POLICY_VIOLATION (44) if the topic is not compacted,
        KAFKA_STORAGE_ERROR (56) if the compacted records cannot be stored.
        """
        check_text("topic", topic, "orders")
        check_int("partition", partition, example=0)
        self._run(lambda: self.state.log_manager.compaction.clean(topic, partition, self.state.actions.now_ms))


_TOPIC_ARGUMENTS = tuple(inspect.signature(TopicMethods.create_topic).parameters)[2:]


def check_topics(topics: Topics) -> None:
    """Raise TypeError or ValueError unless `topics` maps names to numbers of partitions, or to the arguments of `create_topic` as a dict."""
    if not isinstance(topics, Mapping):
        raise TypeError(
            f"topics must be a dict of names to partitions (got {short_repr(topics)}); for example {{'orders': 3}}"
        )
    for name, partitions in topics.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of topics must be str (got {short_repr(name)}); for example {{'orders': 3}}")
        place = f"topics[{name!r}]"
        if isinstance(partitions, int) and not isinstance(partitions, bool):
            _check_topic(f"{place}: ", name, partitions)
            continue
        if not isinstance(partitions, Mapping):
            raise TypeError(
                f"{place} must be a number of partitions or a dict (got {short_repr(partitions)}); for example 3, or {{'partitions': 3}}"
            )
        for argument in partitions:
            if argument not in _TOPIC_ARGUMENTS:
                hint = nearest(argument, _TOPIC_ARGUMENTS) or f"; known are {', '.join(_TOPIC_ARGUMENTS)}"
                raise TypeError(f"{place} has an unknown argument {argument!r}{hint}")
        _check_topic(f"{place}: ", name, **partitions)


def _check_topic(
    place: str,
    name: object,
    partitions: object = 1,
    replication_factor: object = -1,
    configs: object = None,
    assignment: object = None,
) -> None:
    """Raise TypeError or ValueError for invalid arguments of `create_topic`. place: the beginning of the error message.

    The other arguments are those of `create_topic`, not checked yet. configs: settings by name. assignment: maps partitions to broker ids.
    """
    check_text(f"{place}name", name, "orders")
    check_int(f"{place}partitions", partitions, example=3)
    check_int(f"{place}replication_factor", replication_factor, example=3)
    if configs is not None:
        check_mapping(f"{place}configs", configs, "{'retention.ms': 1000}")
    if assignment is None:
        return
    if not isinstance(assignment, Mapping):
        raise TypeError(f"{place}assignment must be a dict (got {short_repr(assignment)}); for example {{0: [1, 2]}}")
    for index, replicas in assignment.items():
        check_int(f"{place}a partition of assignment", index)
        if isinstance(replicas, str | bytes) or not isinstance(replicas, Sequence):
            raise TypeError(
                f"{place}assignment[{index}] must be a list of broker ids (got {short_repr(replicas)}); for example [1, 2]"
            )
        for broker_id in replicas:
            check_int(f"{place}a broker id of assignment[{index}]", broker_id)


def _without_removed(settings: Mapping[str, str | None]) -> dict[str, str]:
    """Return the settings whose value is not None."""
    return {name: value for name, value in settings.items() if value is not None}
