"""What happens to a cluster beside its clients: followers held and slow links cut, elections, brokers that stop, topics that come.

(Crashes with recovery through a data directory belong here once there is one.)
"""

from __future__ import annotations

from collections.abc import Callable

from broker.errors import KafkaError
from tests.broker.scene import hold, release
from tests.simulation.world import BROKERS, World

MOST_TOPICS = 6


class Faults:
    """One method per kind. What cannot be done at the moment is left undone."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._topics = 0
        self._cut: list[tuple[int, int]] = []
        often = [self.hold, self.release, self.cut, self.heal, self.elect, self.restart]
        self.kinds: list[Callable[[], None]] = [*often, *often, self.elect_preferred, self.elect_unclean, self.reassign]
        self.kinds += [self.create_topic, self.delete_topic, self.tidy]

    def act(self) -> None:
        self.world.chance.choice(self.kinds)()

    def first_topics(self) -> None:
        """Every kind of topic: clean, with unclean elections, compacted, short-lived."""
        make = self.world.cluster.topic
        small = {"segment_bytes": "2000"}
        make("clean", 2, 3)
        make("unclean", 1, 3, unclean_leader_election_enable="true", min_insync_replicas="1")
        make("compact", 1, 3, cleanup_policy="compact", min_cleanable_dirty_ratio="0.1", segment_ms="1500", **small)
        make("short", 1, 2, retention_ms="4000", min_insync_replicas="1", segment_ms="1000", **small)

    def _partition(self) -> tuple[str, int]:
        topics = self.world.image.topics
        name = self.world.chance.choice(sorted(topics))
        return name, self.world.chance.randrange(len(topics[name].partitions))

    def _say(self, what: str) -> None:
        self.world.say("fault", what)

    def hold(self) -> None:
        topic, index = self._partition()
        broker_id = self.world.chance.choice(self.world.running())
        self._say(f"hold follower {broker_id} of {topic}-{index}")
        hold(self.world.cluster, broker_id, topic=topic, index=index)

    def release(self) -> None:
        """All that are held."""
        self._say("release all followers")
        for name, topic in sorted(self.world.image.topics.items()):
            for state in topic.partitions:
                release(self.world.cluster, *self.world.running(), topic=name, index=state.index)

    def cut(self) -> None:
        follower, leader = self.world.chance.sample(range(BROKERS), 2)
        self._say(f"cut the link from {leader} to {follower}")
        self._link(follower, leader, cut=True)

    def heal(self) -> None:
        self._say("heal all links")
        for follower in range(BROKERS):
            for leader in range(BROKERS):
                self._link(follower, leader, cut=False)

    def _link(self, follower: int, leader: int, cut: bool) -> None:
        fetcher = self.world.cluster.state.nodes[follower].replicas.fetchers.get(leader)
        if fetcher is not None:
            fetcher.cut_link(cut, self.world.now_ms)
            self.world.cluster.run()

    def elect(self) -> None:
        topic, index = self._partition()
        leader = self.world.chance.choice(self.world.image.partition(topic, index).isr)
        self._say(f"elect {leader} for {topic}-{index}")
        self._try(lambda: self.world.cluster.state.controller.elect(topic, index, leader))

    def elect_preferred(self) -> None:
        topic, index = self._partition()
        self._say(f"preferred election for {topic}-{index}")
        self._try(lambda: self.world.cluster.state.controller.elect_preferred(topic, index))

    def elect_unclean(self) -> None:
        """Only where records may be lost."""
        state = self.world.image.partition("unclean", 0)
        if state is not None:
            self._say("unclean election for unclean-0")
            self._try(lambda: self.world.cluster.state.controller.elect_unclean("unclean", 0))

    def reassign(self) -> None:
        topic, index = self._partition()
        count = self.world.chance.choice([2, 3])
        target = self.world.chance.sample(range(BROKERS), count)
        self._say(f"reassign {topic}-{index} to {target}")
        self._try(lambda: self.world.cluster.state.controller.reassign(topic, index, target))

    def _try(self, action: Callable[[], None]) -> None:
        """What the controller refuses stays as it is."""
        try:
            action()
        except KafkaError as error:
            self._say(f"refused: {error}")
        self.world.cluster.run()

    def restart(self) -> None:
        """A broker stops, or all that are stopped start."""
        running = self.world.running()
        if len(running) == BROKERS or (len(running) == BROKERS - 1 and self.world.chance.random() < 0.3):
            broker_id = self.world.chance.choice(running)
            self._say(f"stop broker {broker_id}")
            self.world.cluster.state.stop_broker(broker_id)
        else:
            self.start_all()
        self.world.cluster.run()

    def start_all(self) -> None:
        stopped = [i for i in range(BROKERS) if i not in self.world.running()]
        self.world.chance.shuffle(stopped)
        for broker_id in stopped:
            self._say(f"start broker {broker_id}")
            self.world.cluster.state.start_broker(broker_id)
            self.world.cluster.run()

    def create_topic(self) -> None:
        if len(self.world.image.topics) < MOST_TOPICS and len(self.world.running()) == BROKERS:
            self._topics += 1
            name = f"extra-{self._topics % 2}"  # a name that comes again is another topic
            if name not in self.world.image.topics:
                self._say(f"create {name}")
                self.world.cluster.topic(name, 1, self.world.chance.choice([1, 2, 3]))

    def delete_topic(self) -> None:
        for name in sorted(self.world.image.topics):
            if name.startswith("extra") and self.world.chance.random() < 0.5:
                self._say(f"delete {name}")
                self.world.cluster.state.controller.delete_topic(name)
                self.world.cluster.run()
                return

    def tidy(self) -> None:
        """Retention and compaction now, not at their next instant."""
        self._say("retention and compaction")
        state = self.world.cluster.state
        state.upkeep.retention.run(self.world.now_ms)
        self._try(lambda: state.upkeep.compaction.clean("compact", 0, self.world.now_ms))
        self.world.cluster.run()
