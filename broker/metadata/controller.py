"""The controller: the only one who changes the cluster's image. Topics, elections, in-sync replicas (`ReplicationControlManager`).

Every change is one new image, which the brokers take over. Knows no log and no time: what a replica holds is the nodes' affair.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from kafkaproto.broker.config.values import ClusterConfig, check_topic_settings
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata import planning, reassignment
from kafkaproto.broker.metadata.election import among_the_living
from kafkaproto.broker.metadata.image import INTERNAL_TOPICS, NO_LEADER, BrokerState, Image, PartitionState, Topic
from kafkaproto.error_codes import ErrorCode

ImageChange = Callable[[Image, Image, Sequence[str]], None]
"""(old image, new image, names of topics that changed, came or went)"""


class Controller:
    """Holds `image`.

    take_over: called after each change, to have the brokers take over the new image.
    remember: called before a change that was asked for; raises KafkaError if it must not happen because it would be forgotten.
    remember_if_possible: the same for what happened without being asked for; it holds in any case.
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
        self.image = Image.empty(cluster_id)
        self.take_over = take_over
        self._config = config
        self._rng = rng
        self._remember = remember
        self._remember_if_possible = remember_if_possible

    def restore(self, topics: Mapping[str, Topic]) -> None:
        """Begin with topics that another process has left."""
        self._follow(self.image.with_topics(topics), tuple(topics))

    # ---- brokers -------------------------------------------------------------------------------------------------------------

    def set_broker(self, broker: BrokerState) -> None:
        """A new broker, or new addresses of one that is known."""
        self._show(self.image.with_brokers({**self.image.brokers, broker.broker_id: broker}), ())

    def broker_stopped(self, broker_id: int) -> None:
        """Fence it: it leaves every ISR but those it is the last member of, and its leaderships go to others.

        Clean elections only, or unclean ones where unclean.leader.election.enable allows.
        """
        self.set_broker(replace(self.image.brokers[broker_id], alive=False))
        self._review([t for t in self.image.topics.values() if any(broker_id in p.isr for p in t.partitions)])

    def broker_started(self, broker_id: int) -> None:
        """It is alive again; partitions without a leader may get one."""
        self.set_broker(replace(self.image.brokers[broker_id], alive=True))
        self.give_leaders()

    def give_leaders(self) -> None:
        """Let partitions without a leader have one if somebody can."""
        self._review([t for t in self.image.topics.values() if any(p.leader == NO_LEADER for p in t.partitions)])

    def _review(self, topics: Iterable[Topic]) -> None:
        changed = {}
        for topic in topics:
            unclean = bool(self._config.topic_value(-1, topic.configs, "unclean.leader.election.enable"))
            partitions = tuple(among_the_living(self.image, p, unclean) for p in topic.partitions)
            if partitions != topic.partitions:
                changed[topic.name] = replace(topic, partitions=partitions)
        if changed:
            self._follow(self.image.with_topics(changed), tuple(changed))

    # ---- topics --------------------------------------------------------------------------------------------------------------

    def plan_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> Topic:
        """Check a topic to be and lay it out; nothing changes. -1 takes num.partitions, default.replication.factor.

        Raises KafkaError 17, 36, 37, 38, 39, 40, 44 as CreateTopics answers them.
        """
        return planning.plan_topic(
            self.image, self._config, self._rng, name, partitions, replication_factor, assignment, configs
        )

    def create_topic(self, topic: Topic) -> None:
        """Publish what `plan_topic` made."""
        self._publish(self.image.with_topics({topic.name: topic}), (topic.name,))

    def plan_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        counted: Callable[[int], None] = lambda _: None,
    ) -> Topic:
        """The topic with partitions added so that there are `count`; nothing changes.

        assignments: replicas of each new one, None to have them laid out. counted: is told how many are to be added when that is
        known to be right, and before it is looked where they lie. Raises KafkaError 3, 37, 38, 39, 44 as CreatePartitions does, and what
        `counted` raises.
        """
        return planning.plan_partitions(self.image, name, count, assignments, counted)

    def add_partitions(self, topic: Topic) -> None:
        """Publish what `plan_partitions` made."""
        self._publish(self.image.with_topics({topic.name: topic}), (topic.name,))

    def delete_topic(self, name: str) -> None:
        """Raises KafkaError 3 when there is none."""
        if name not in self.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        self._publish(self.image.with_topics({}, (name,)), (name,))

    def topic_configs(self, name: str) -> Mapping[str, str] | None:
        """Return a topic's own settings, None if there is no such topic."""
        topic = self.image.topics.get(name)
        return None if topic is None else topic.configs

    def set_topic_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace a topic's own settings. Raises KafkaError 3, ConfigError."""
        topic = self.image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
        check_topic_settings(configs, self._config.strict_kip)
        self._publish(self.image.with_topics({name: replace(topic, configs=dict(configs))}), (name,))

    # ---- partitions ----------------------------------------------------------------------------------------------------------

    def change_isr(self, wanted: Mapping[tuple[str, int], Collection[int]]) -> None:
        """What leaders decided about their followers, all in one image (`AlterPartition`). Only live replicas may join."""
        changed: dict[str, Topic] = {}
        for (name, index), isr in wanted.items():
            topic = changed.get(name) or self.image.topics.get(name)
            if topic is None or index >= len(topic.partitions):
                continue
            state = topic.partitions[index]
            new = tuple(r for r in state.replicas if r in isr and self.image.is_alive(r))
            if new and new != state.isr:
                partitions = list(topic.partitions)
                partitions[index] = _settled(
                    self.image, replace(state, isr=new, partition_epoch=state.partition_epoch + 1)
                )
                changed[name] = replace(topic, partitions=tuple(partitions))
        if changed:
            self._follow(self.image.with_topics(changed), tuple(changed))

    def elect(self, topic: str, index: int, leader: int) -> None:
        """Make `leader` lead, one epoch on. Raises KafkaError 3 for an unknown partition, 80 when it is not alive and in sync."""
        state = self._known(topic, index)
        if leader not in state.isr or not self.image.is_alive(leader):
            raise KafkaError(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
                f"Broker {leader} cannot lead {topic}-{index}: its in-sync replicas are {list(state.isr)}.",
            )
        self._replace(topic, _led_by(state, leader))

    def elect_preferred(self, topic: str, index: int) -> None:
        """Give the leadership back to the first replica (KIP-183). Raises KafkaError 3, 80 (it cannot), 84 (it has it)."""
        state = self._known(topic, index)
        if state.leader == state.replicas[0]:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "The preferred replica leads already.")
        self.elect(topic, index, state.replicas[0])

    def elect_unclean(self, topic: str, index: int) -> None:
        """Make any live replica lead a partition that has no leader, in sync or not (KIP-460): what only others had is lost.

        Raises KafkaError 3, 83 (no replica is alive), 84 (it has a leader).
        """
        state = self._known(topic, index)
        if state.leader != NO_LEADER:
            raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"Broker {state.leader} leads.")
        alive = [r for r in state.replicas if self.image.is_alive(r)]
        if not alive:
            raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, f"None of {list(state.replicas)} is alive.")
        leader = next((r for r in alive if r in state.isr), alive[0])
        isr = state.isr if leader in state.isr else (leader,)
        self._replace(topic, _led_by(replace(state, isr=isr), leader))

    def reassign(self, topic: str, index: int, target: Sequence[int] | None) -> None:
        """Begin to move a partition to the brokers `target`, the preferred leader first; None takes back what was begun.

        Raises KafkaError 3 (unknown), 39 (impossible brokers, or nobody would be in sync), 85 (nothing to take back).
        """
        state = self._known(topic, index)
        if target is None:
            if not state.is_reassigned:
                raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{topic}-{index} is not being reassigned.")
            try:
                state = reassignment.cancelled(state)
            except ValueError as error:
                raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, str(error)) from None
        else:
            planning.check_replicas(self.image, target)
            state = reassignment.begun(state, target)
        self._replace(topic, _settled(self.image, state))

    def _known(self, topic: str, index: int) -> PartitionState:
        state = self.image.partition(topic, index)
        if state is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
        return state

    def _replace(self, topic: str, state: PartitionState) -> None:
        old = self.image.topics[topic]
        partitions = (*old.partitions[: state.index], state, *old.partitions[state.index + 1 :])
        self._publish(self.image.with_topics({topic: replace(old, partitions=partitions)}), (topic,))

    def ensure_internal(self, name: str) -> Topic:
        """The internal topic `name`, created on first use with the settings that Kafka has for it."""
        existing = self.image.topics.get(name)
        if existing is not None:
            return existing
        assert name in INTERNAL_TOPICS
        prefix = "offsets.topic" if name == "__consumer_offsets" else "transaction.state.log"
        alive = sum(b.alive for b in self.image.brokers.values())
        factor = self._config.get(-1, f"{prefix}.replication.factor")
        if factor > alive:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{name} needs {factor} brokers ({prefix}.replication.factor), {alive} are alive.",
            )
        topic = self.plan_topic(
            name, self._config.get(-1, f"{prefix}.num.partitions"), factor, None, {"cleanup.policy": "compact"}
        )
        self.create_topic(topic)
        return topic

    def _publish(self, image: Image, changed: Sequence[str]) -> None:
        """What was asked for. Raises KafkaError 56 when it cannot be remembered; then nothing has changed."""
        if self._remember is not None:
            self._remember(self.image, image, changed)
        self._show(image, changed)

    def _follow(self, image: Image, changed: Sequence[str]) -> None:
        """What follows from something that happened already."""
        if self._remember_if_possible is not None:
            self._remember_if_possible(self.image, image, changed)
        self._show(image, changed)

    def _show(self, image: Image, changed: Sequence[str]) -> None:
        old, self.image = self.image, image
        self.take_over(old, image, changed)


def _led_by(state: PartitionState, leader: int) -> PartitionState:
    return replace(state, leader=leader, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1)


def _settled(image: Image, state: PartitionState) -> PartitionState:
    """A reassignment that may end has ended, and somebody leads."""
    state = reassignment.settled(state)
    if state.leader in state.replicas or state.leader == NO_LEADER:
        return state
    leader = next((r for r in state.replicas if r in state.isr and image.is_alive(r)), NO_LEADER)
    return _led_by(state, leader)
