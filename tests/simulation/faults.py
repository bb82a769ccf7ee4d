"""Faults of a cluster: held followers, cut links, elections, brokers and processes that die, disks that fail.

A broker that crashes alone behaves like one that stops: its connections close at once, other brokers become leaders, and its log stays as
written (`kill -9` ends the process, not the power). After its restart it truncates what its new leader does not have. In Kafka it would
also lose the high watermarks since its last checkpoint; that is not simulated. With a data directory, all brokers can crash at once with
the process (`world.kill_process`), between two steps or in the middle of any write.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from kafkaproto.broker.config.dynamic import BrokerResource, Change, Operation, TopicResource, change
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.replication_quotas import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from tests.simulation.disk import BROKEN, FULL
from tests.simulation.world import BROKERS, MOST_TOPICS, World
from tests.support.scene import hold, release


class Faults:
    """The kinds of faults, one method for each. A fault that is impossible at the moment does nothing."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._topics = 0
        often = [self.hold, self.release, self.cut, self.heal, self.elect, self.restart]
        rarely = [
            self.elect_preferred,
            self.elect_unclean,
            self.reassign,
            self.create_topic,
            self.delete_topic,
            self.tidy,
        ]
        quotas = [self.idle, self.skip_an_hour, self.hang_up, self.hang_up]
        if world.has_quotas:
            quotas += [self.costs, self.costs, self.throttle_replicas, self.throttle_replication]
        disks = [self.slow_disk, self.quick_disks]
        if world.disk is not None:
            disks += [
                self.refuse,
                self.take_again,
                self.kill,
                self.kill_in_a_write,
                self.kill_in_a_write,
                self.end_process,
            ]
        self.kinds: list[Callable[[], None]] = [*often, *often, *rarely, *quotas, *disks]

    def act(self) -> None:
        self.world.chance.choice(self.kinds)()

    def end(self) -> None:
        """Undo all faults. With a data directory, first kill and restart the process one last time."""
        if self.world.disk is not None:
            self.world.disk.spare()
            self.kill()
            self.take_again()
        self.quick_disks()
        self.start_all()
        self.heal()
        self.release()
        self.world.chance.choice([self.lift_rates, self.unlist_replicas])()

    def first_topics(self) -> None:
        """Create topics of every kind: clean elections, unclean elections, compacted, short-lived."""
        make = self.world.cluster.topic
        # releases from 4.0 have no segments below 1 MiB
        small = {"segment_bytes": "2000"} if self.world.release == "3.9" else {}
        make("clean", 2, 3)
        make("ledger", 2, 3)
        make("unclean", 1, 3, unclean_leader_election_enable="true", min_insync_replicas="1")
        quick = {"min_cleanable_dirty_ratio": "0.1", "segment_ms": "1500", "delete_retention_ms": "8000"}
        make("compact", 1, 3, cleanup_policy="compact", **quick, **small)
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
        """Release all held followers."""
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
        state = self.world.image.partition(topic, index)
        leader = self.world.chance.choice(state.isr or state.replicas)  # the election fails without in-sync replicas
        self._say(f"elect {leader} for {topic}-{index}")
        self._try(lambda: self.world.cluster.state.controller.elect(topic, index, leader))

    def elect_preferred(self) -> None:
        topic, index = self._partition()
        self._say(f"preferred election for {topic}-{index}")
        self._try(lambda: self.world.cluster.state.controller.elect_preferred(topic, index))

    def elect_unclean(self) -> None:
        """Elect an unclean leader in a topic that may lose records."""
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
        """Run an action of the controller; a rejected one changes nothing."""
        try:
            action()
        except KafkaError as error:
            self._say(f"refused: {error}")
        self.world.cluster.run()

    def restart(self) -> None:
        """Stop a broker, or start all that are stopped."""
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
            self.world.quotas.broker_starts(broker_id)
            self.world.cluster.state.start_broker(broker_id)
            self.world.cluster.run()

    def create_topic(self) -> None:
        if len(self.world.topics) < MOST_TOPICS and len(self.world.running()) == BROKERS:
            self._topics += 1
            name = f"extra-{self._topics % 2}"  # a repeated name is another topic
            if name not in self.world.image.topics:
                self._say(f"create {name}")
                count = self.world.chance.choice([1, 2, 3])
                self._try(lambda: self.world.cluster.topic(name, 1, count))

    def delete_topic(self) -> None:
        for name in sorted(self.world.image.topics):
            if name.startswith("extra") and self.world.chance.random() < 0.5:
                self._say(f"delete {name}")
                self._try(partial(self.world.cluster.state.controller.delete_topic, name))
                return

    def tidy(self) -> None:
        """Run retention and compaction now instead of at their next time."""
        self._say("retention and compaction")
        state = self.world.cluster.state
        state.log_manager.retention.run(self.world.now_ms)
        self._try(lambda: state.log_manager.compaction.clean("compact", 0, self.world.now_ms))
        self.world.cluster.run()

    # ---- quotas --------------------------------------------------------------------------------------------------------------

    def idle(self) -> None:
        """Let enough time pass for samples to expire."""
        if self.world.chance.random() < 0.3:
            delta_ms = self.world.chance.choice([10_000, 11_000, 11_001, 12_345])
            self._say(f"nothing for {delta_ms} ms")
            self.world.advance(delta_ms)

    def skip_an_hour(self) -> None:
        """Let sensors expire; connections are closed long before. Throttled followers would fetch 7,200 times meanwhile."""
        if self.world.chance.random() < 0.3:
            self.lift_rates()
            self.unlist_replicas()
            if not any(node.replicas.leader_quota.active for node in self.world.cluster.state.nodes):
                self._say("nothing for more than an hour")
                self.world.skip(3_700_000)

    def hang_up(self) -> None:
        """Disconnect a client while it is throttled."""
        muted = [line for line in self.world.lines if line.is_open and line.muted_until_ms > self.world.now_ms]
        if muted:
            line = self.world.chance.choice(muted)
            self._say(f"{line.name} hangs up")
            line.hang_up()
            self.world.cluster.run()

    def costs(self) -> None:
        """Change the time that handling a request takes."""
        api = self.world.chance.choice(["Produce", "Fetch", "Fetch", "Metadata", "ListOffsets", "CreateTopics"])
        cost_ms = self.world.chance.choice([0, 0.3, 4, 25, 140])
        self._say(f"{api} costs {cost_ms} ms")
        self.world.quotas.costs[api] = cost_ms
        self.world.cluster.state.set_request_cost(api, cost_ms)

    def throttle_replicas(self) -> None:
        """Throttle all, some or no replicas of a topic."""
        world = self.world
        name = world.chance.choice(sorted(world.topics))
        listed = {
            setting: world.chance.choice([None, "*", "*", f"0:{world.chance.randrange(BROKERS)}"])
            for setting in (LEADER_REPLICAS, FOLLOWER_REPLICAS)
        }
        self._set(TopicResource(world.cluster.state, name), f"topic {name}", listed)

    def throttle_replication(self) -> None:
        """Limit the replication rates of one broker or of all."""
        world = self.world
        broker_id = world.chance.choice([-1, *range(BROKERS)])
        rates = {
            setting: world.chance.choice([None, "0", "0", "30", "300"]) for setting in (LEADER_RATE, FOLLOWER_RATE)
        }
        self._set(BrokerResource(world.cluster.state, broker_id), f"broker {broker_id}", rates)

    def lift_rates(self) -> None:
        for broker_id in (-1, *range(BROKERS)):
            resource = BrokerResource(self.world.cluster.state, broker_id)
            rates = {LEADER_RATE, FOLLOWER_RATE} & resource.current_settings.keys()
            if rates:
                self._set(resource, f"broker {broker_id}", dict.fromkeys(sorted(rates)))

    def unlist_replicas(self) -> None:
        for name, topic in sorted(self.world.topics.items()):
            listed = {LEADER_REPLICAS, FOLLOWER_REPLICAS} & topic.configs.keys()
            if listed:
                resource = TopicResource(self.world.cluster.state, name)
                self._set(resource, f"topic {name}", dict.fromkeys(sorted(listed)))

    def _set(self, resource: BrokerResource | TopicResource, of: str, values: dict[str, str | None]) -> None:
        self._say(f"{of} has {values}")
        entries = [
            Change(name, Operation.DELETE if value is None else Operation.SET, value) for name, value in values.items()
        ]
        self._try(lambda: change(resource, entries, self.world.semantics == "kip"))

    # ---- disks ---------------------------------------------------------------------------------------------------------------

    def slow_disk(self) -> None:
        """Delay the writes of a broker, for client requests and replication."""
        world = self.world
        broker_id = world.chance.choice(world.running())
        delay_ms = world.chance.choice([5, 60, 400])
        self._say(f"the disk of broker {broker_id} takes {delay_ms} ms")
        world.disk_delay_ms[broker_id] = delay_ms
        for fetcher in world.cluster.state.nodes[broker_id].replicas.fetchers.values():
            for topic, index in fetcher.partitions:
                fetcher.slow(topic, index, delay_ms)

    def quick_disks(self) -> None:
        """Remove the delay of all disks and release held followers."""
        self._say("all disks are quick")
        self.world.disk_delay_ms.clear()
        self.release()

    def refuse(self) -> None:
        """Make the disk full or broken: existing data can be read, and writes fail."""
        disk = self.world.disk
        assert disk is not None
        disk.refuses = self.world.chance.choice([FULL, BROKEN])
        self._say(f"the disk refuses: {os.strerror(disk.refuses)}")

    def take_again(self) -> None:
        disk = self.world.disk
        assert disk is not None
        disk.refuses = 0
        self._say("the disk is well")

    def kill(self) -> None:
        self._say("kill the process")
        self.world.kill_process()

    def kill_in_a_write(self) -> None:
        """Kill the process during one of its next writes."""
        disk = self.world.disk
        assert disk is not None
        number = self.world.chance.choice([1, 2, 3, 10, 40])
        self._say(f"kill the process at its write {number} from now")
        disk.kill_at_write(number)

    def end_process(self) -> None:
        self._say("end the process")
        self.world.end_process()
