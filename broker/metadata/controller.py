"""The controller, the only component that changes the cluster's metadata: topics, elections, in-sync replicas (`ReplicationControlManager`).

Every change makes one new image, which the brokers apply. This module does not depend on logs or time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from kafkaproto.broker.config.cluster_config import MIN_INSYNC_REPLICAS, ClusterConfig
from kafkaproto.broker.config.features import initial_features
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata import planning, reassignment
from kafkaproto.broker.metadata.election import among_the_living, isr_order, with_eligible, without_eligible
from kafkaproto.broker.metadata.image import (
    COORDINATOR_TOPICS,
    NO_LEADER,
    BrokerState,
    Image,
    PartitionState,
    Topic,
)
from kafkaproto.broker.metadata.no_op_records import NoOpRecords
from kafkaproto.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafkaproto.broker.metadata.scram import Credentials

ImageChange = Callable[[Image, Image, Sequence[str]], None]
"""A function called with (old metadata image, new metadata image, names of the topics that were changed, created or deleted)."""


NO_ELECTION = "Leader election not needed for topic partition."
NO_ELIGIBLE_LEADER = "Eligible topic partition leaders are not available."
NO_PREFERRED_LEADER = "The preferred leader was not available."


class Controller:
    """Holds the current metadata image and changes it.

    - take_over: a function called after each change, so that the brokers apply the new image.
    - remember: a function called before a change that a client requested; it raises KafkaError to reject the change if it cannot be persisted.
    - remember_if_possible: a function called before a change that cannot be rejected, such as an election after a broker stopped.

    `remember` and `remember_if_possible` are None for a cluster without a data directory.
    """

    def __init__(
        self,
        cluster_id: str,
        config: ClusterConfig,
        rng: Random,
        take_over: ImageChange,
        remember: ImageChange | None = None,
        remember_if_possible: ImageChange | None = None,
    ) -> None:
        self.image = Image.empty(cluster_id, initial_features(config.release))
        self.no_op_records = NoOpRecords(0, lambda: 0)
        self.take_over = take_over
        self._config = config
        self._rng = rng
        self._remember = remember
        self._remember_if_possible = remember_if_possible

    def restore(
        self, topics: Mapping[str, Topic], scram: Credentials, features: Mapping[str, int], offset: int
    ) -> None:
        """Restore persisted topics, SCRAM credentials and feature levels. offset: the number of the last persisted image; new numbers are higher."""
        self.image = replace(self.image, offset=self.image.offset + offset)
        self._follow(replace(self.image.with_topics(topics), scram=scram, features=features), tuple(topics))

    # ---- brokers -------------------------------------------------------------------------------------------------------------

    def set_broker(self, broker: BrokerState) -> None:
        """Add a broker, or change the addresses of a known one."""
        self._follow(self.image.with_brokers({**self.image.brokers, broker.broker_id: broker}), ())

    def broker_stopped(self, broker_id: int) -> None:
        """Fence a broker that stopped, and give each partition with this broker in its ISR a new ISR and, if necessary, a new leader.

        The new leader is an in-sync replica or, if none is running, an eligible leader replica. Only if unclean.leader.election.enable is true, it
        can be any other replica. `among_the_living` in `metadata.election` has the exact rules, also for the ISR.
        """
        self.set_broker(replace(self.image.brokers[broker_id], alive=False))
        self._review([t for t in self.image.topics.values() if any(broker_id in p.isr for p in t.partitions)])

    def broker_started(self, broker_id: int) -> None:
        """Unfence a broker that has started, and elect leaders for partitions without a leader."""
        self.set_broker(replace(self.image.brokers[broker_id], alive=True, registered=True))
        self.give_leaders()

    def unregister_broker(self, broker_id: int) -> None:
        """Remove the registration of a broker, and fence the broker if it is running. The broker is registered again when it starts."""
        self.set_broker(replace(self.image.brokers[broker_id], registered=False))
        if self.image.is_alive(broker_id):
            self.broker_stopped(broker_id)

    def give_leaders(self) -> None:
        """Elect a leader for each partition without a leader. A partition stays without one if none of its running replicas may lead."""
        self._review([t for t in self.image.topics.values() if any(p.leader == NO_LEADER for p in t.partitions)])

    def _review(self, topics: Iterable[Topic]) -> None:
        changed_topics = {}
        for topic in topics:
            unclean = bool(self._config.topic_value(-1, topic.configs, "unclean.leader.election.enable"))
            partitions = tuple(among_the_living(self.image, p, unclean) for p in topic.partitions)
            if partitions != topic.partitions:
                changed_topics[topic.name] = replace(topic, partitions=partitions)
        if changed_topics:
            self._follow(self.image.with_topics(changed_topics), tuple(changed_topics))

    # ---- topics --------------------------------------------------------------------------------------------------------------

    check_topic_name = staticmethod(planning.check_name)

    def plan_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignment: planning.Assignment = (),
        configs: Mapping[str, str | None] | None = None,
    ) -> Topic:
        """Validate a new topic and place its replicas, without changing anything.

        partitions, replication_factor: -1 for the settings num.partitions and default.replication.factor; both must be -1 with an assignment.
        assignment: the replicas of each partition; empty to place them. configs: the topic's own settings as text; a null as value is invalid.
        Raises KafkaError with one of the errors of CreateTopics: INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS,
        INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG or POLICY_VIOLATION.
        """
        return planning.plan_topic(
            self.image, self._config, self._rng, name, partitions, replication_factor, assignment, configs
        )

    def put_topic(self, topic: Topic) -> None:
        """Publish a topic that `plan_topic` or `plan_partitions` returned: a new topic, or an existing topic with more partitions."""
        self.publish(self.image.with_topics({topic.name: topic}), (topic.name,))

    def plan_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        counted: Callable[[int], None] = lambda _: None,
    ) -> Topic:
        """Return the topic enlarged to `count` partitions, without changing anything.

        assignments: the replicas of each new partition, None to place them. counted: a function that is called with the number of new partitions
        before the replicas are checked, unless the number is below 1 or does not match `assignments`; its exceptions are passed on. Raises KafkaError
        with one of the errors of CreatePartitions: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
        INVALID_REPLICA_ASSIGNMENT or POLICY_VIOLATION.
        """
        return planning.plan_partitions(self.image, name, count, assignments, counted)

    def delete_topic(self, *names: str) -> None:
        """Delete a topic, or several topics together in one new image. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if one does not exist."""
        if any(name not in self.image.topics for name in names):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        self.publish(self.image.with_topics({}, names), names)

    def topic_configs(self, name: str) -> Mapping[str, str] | None:
        """Return the settings that a topic sets itself, or None if the topic does not exist."""
        topic = self.image.topics.get(name)
        return None if topic is None else topic.configs

    def set_topic_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the settings that a topic sets itself by `configs`.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) for an unknown topic, ConfigError for an invalid setting.
        """
        topic = self.image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
        self._config.check_topic(configs)
        if topic.configs.get(MIN_INSYNC_REPLICAS) != configs.get(MIN_INSYNC_REPLICAS):
            topic = without_eligible(self.image, [name], self._config).topics[name]
        self.publish(self.image.with_topics({name: replace(topic, configs=dict(configs))}), (name,))

    def forget_eligible(self) -> None:
        """Clear the lists of eligible leader replicas of all partitions, because the cluster-wide value of min.insync.replicas has changed."""
        names = tuple(self.image.topics)
        image = without_eligible(self.image, names, self._config)
        if image is not self.image:
            self._follow(image, names)

    # ---- partitions ----------------------------------------------------------------------------------------------------------

    def change_isr(self, isr_of_partitions: Mapping[tuple[str, int], Collection[int]]) -> None:
        """Apply the in-sync replicas that leaders propose, all in one new image (`AlterPartition`). Replicas that do not run are left out.

        isr_of_partitions: maps (topic, partition) to the broker ids of the proposed in-sync replicas.
        """
        changed_topics: dict[str, Topic] = {}
        for (name, index), isr in isr_of_partitions.items():
            topic = changed_topics.get(name) or self.image.topics.get(name)
            if topic is None or index >= len(topic.partitions):
                continue
            state = topic.partitions[index]
            alive = {r for r in state.replicas if r in isr and self.image.is_alive(r)}
            if alive and alive != set(state.isr):
                new_isr = isr_order(state.isr, alive, self._config.release)
                partitions = list(topic.partitions)
                partitions[index] = _settled(
                    self.image, replace(state, isr=new_isr, partition_epoch=state.partition_epoch + 1)
                )
                changed_topics[name] = replace(topic, partitions=tuple(partitions))
        if changed_topics:
            self._follow(self.image.with_topics(changed_topics), tuple(changed_topics))

    def elect(self, topic: str, index: int, leader: int) -> None:
        """Make the replica on broker `leader` the leader of a partition, in a new leader epoch.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) for an unknown partition, PREFERRED_LEADER_NOT_AVAILABLE (80) if the broker does not run or
        its replica is not in sync.
        """
        state = _existing_partition(self.image, topic, index)
        if leader not in state.isr or not self.image.is_alive(leader):
            raise KafkaError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"Broker {leader} cannot lead {topic}-{index}: the in-sync replicas of the partition are {list(state.isr)}.",
            )
        self._replace(topic, _led_by(state, leader))

    def elect_preferred(self, topic: str, index: int) -> None:
        """Make the first replica of a partition its leader again (KIP-183).

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) for an unknown partition, PREFERRED_LEADER_NOT_AVAILABLE (80) if the replica cannot lead, or
        ELECTION_NOT_NEEDED (84) if it leads already.
        """
        state = _existing_partition(self.image, topic, index)
        if state.leader == state.replicas[0]:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, NO_ELECTION)
        if state.replicas[0] not in state.isr or not self.image.is_alive(state.replicas[0]):
            raise KafkaError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, NO_PREFERRED_LEADER)
        self.elect(topic, index, state.replicas[0])

    def elect_unclean(self, topic: str, index: int) -> None:
        """Make a running replica the leader of a partition without a leader: one that is in sync or eligible, else any other (KIP-460).

        Records that only other replicas had are lost. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) for an unknown partition,
        ELIGIBLE_LEADERS_NOT_AVAILABLE (83) if no replica is running, or ELECTION_NOT_NEEDED (84) if the partition has a leader.
        """
        state = _existing_partition(self.image, topic, index)
        if state.leader != NO_LEADER:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, NO_ELECTION)
        alive = [r for r in state.replicas if self.image.is_alive(r)]
        if not alive:
            raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, NO_ELIGIBLE_LEADER)
        eligible = state.isr or state.eligible
        leader = next((r for r in alive if r in eligible), alive[0])
        isr = state.isr if leader in state.isr else (leader,)
        self._replace(topic, _led_by(replace(state, isr=isr), leader))

    def reassign(self, topic: str, index: int, target: Sequence[int] | None, *, keeps_factor: bool = False) -> None:
        """Start to move a partition to the brokers `target`, the preferred leader first; None cancels a move in progress.

        keeps_factor: whether the number of replicas must stay the same (KIP-860). Raises KafkaError:

        - UNKNOWN_TOPIC_OR_PARTITION (3) for an unknown partition;
        - INVALID_REPLICA_ASSIGNMENT (39) for invalid brokers, or if no replica would be in sync after the cancellation;
        - INVALID_REPLICATION_FACTOR (38) if `keeps_factor` is true and the number of replicas changes;
        - NO_REASSIGNMENT_IN_PROGRESS (85) if there is nothing to cancel.
        """
        state = self.image.partition(topic, index)
        if state is None:
            if topic not in self.image.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}.")
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic}:{index}.")
        if target is None:
            if not state.is_reassigned:
                raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
            try:
                state = reassignment.cancelled(state)
            except ValueError as error:
                raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, str(error)) from None
        else:
            planning.check_replicas(self.image, target)
            factor = len(state.replicas) - len(state.removing)
            if keeps_factor and factor != len(target):
                message = f"The replication factor is changed from {factor} to {len(target)}"
                raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
            state = reassignment.with_reassignment(state, target)
        self._replace(topic, _settled(self.image, state))

    def _replace(self, topic: str, state: PartitionState) -> None:
        old_topic = self.image.topics[topic]
        partitions = (*old_topic.partitions[: state.index], state, *old_topic.partitions[state.index + 1 :])
        self.publish(self.image.with_topics({topic: replace(old_topic, partitions=partitions)}), (topic,))

    def ensure_internal(self, name: str) -> Topic:
        """Return the internal topic `name`, creating it if it does not exist: `__consumer_offsets` or `__transaction_state`.

        Raises KafkaError INVALID_REPLICATION_FACTOR (38) if too few brokers are registered. Stopped brokers stay registered (GO-2).
        """
        existing = self.image.topics.get(name)
        if existing is not None:
            return existing
        assert name in COORDINATOR_TOPICS
        prefix = "offsets.topic" if name == "__consumer_offsets" else "transaction.state.log"
        registered_count = sum(b.registered for b in self.image.brokers.values())
        factor = self._config.get(-1, f"{prefix}.replication.factor")
        if factor > registered_count:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Topic {name} needs {factor} brokers ({prefix}.replication.factor), but only {registered_count} are registered.",
            )
        topic = self.plan_topic(
            name, self._config.get(-1, f"{prefix}.num.partitions"), factor, None, _internal_settings(name, self._config)
        )
        self.put_topic(topic)
        return topic

    def publish(self, image: Image, changed: Sequence[str]) -> None:
        """Make `image` the current metadata image, because a client requested a change. changed: the names of the topics that differ.

        Raises KafkaError KAFKA_STORAGE_ERROR (56) if the image cannot be persisted; then nothing has changed.
        """
        image = with_eligible(self.image, image, changed, self._config)
        if self._remember is not None:
            self._remember(self.image, image, changed)
        self._show(image, changed)

    def _follow(self, image: Image, changed: Sequence[str]) -> None:
        """Make `image` the current metadata image after an event that cannot be rejected, such as the stop of a broker.

        The image takes effect even if it cannot be persisted. changed: the names of the topics that differ from the previous image.
        """
        image = with_eligible(self.image, image, changed, self._config)
        if self._remember_if_possible is not None:
            self._remember_if_possible(self.image, image, changed)
        self._show(image, changed)

    def _show(self, image: Image, changed: Sequence[str]) -> None:
        old_image = self.image
        self.image = replace(image, offset=old_image.offset + 1)
        self.take_over(old_image, self.image, changed)


def _existing_partition(image: Image, topic: str, index: int) -> PartitionState:
    state = image.partition(topic, index)
    if state is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"No such partition as {topic}-{index}" if topic in image.topics else f"No such topic as {topic}",
        )
    return state


def _internal_settings(name: str, config: ClusterConfig) -> dict[str, str]:
    """Return the settings with which Kafka creates the internal topic `name` (GO-1, TX-2)."""
    if name != "__consumer_offsets":
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.get(-1, "transaction.state.log.min.isr")),
            "segment.bytes": str(config.get(-1, "transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        }
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.get(-1, "offsets.topic.segment.bytes")),
    }


def _led_by(state: PartitionState, leader: int) -> PartitionState:
    return replace(state, leader=leader, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1)


def _settled(image: Image, state: PartitionState) -> PartitionState:
    """Return the partition with its reassignment completed, if all added replicas are in sync; otherwise unchanged.

    If the completed reassignment removes the leader's replica, a live in-sync replica becomes the leader; without such a replica the partition has no
    leader.
    """
    state = reassignment.settled(state)
    if state.leader in state.replicas or state.leader == NO_LEADER:
        return state
    leader = next((r for r in state.replicas if r in state.isr and image.is_alive(r)), NO_LEADER)
    return _led_by(state, leader)
