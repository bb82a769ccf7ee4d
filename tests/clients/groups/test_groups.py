"""Client libraries as members of groups: nothing is lost and no partition is owned twice, whatever happens to members and coordinator."""

from __future__ import annotations

import time

import pytest

from kafkaproto.partitioner import java_hash
from kafkaproto.testing import TestCluster, cluster
from tests.support.groups.history import Partition
from tests.support.groups.members import SESSION_MS, SESSION_SETTINGS, Client, Members

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.clients, pytest.mark.timeout(300)]

GROUP, TOPIC, OTHER_TOPIC, OFFSETS = "readers", "orders", "returns", "__consumer_offsets"
PARTITIONS = {TOPIC: 6, OTHER_TOPIC: 2}
BROKER_SESSION_MS = 1_000
WITHOUT_HANDOVER = {
    "controlled.shutdown.enable": "false",
    "broker.session.timeout.ms": str(BROKER_SESSION_MS),
    "broker.heartbeat.interval.ms": "1",  # the session lasts for the whole timeout after a stop
}
"""Settings with which a stopped broker hands nothing over, like one that is killed: the metadata names it as leader until its session ends (M-14)."""


def new_group_protocol(release: str) -> dict[str, str]:
    """Return the setting that turns on the new group protocol, which is off by default before Kafka 4.0."""
    return {"group.coordinator.rebalance.protocols": "classic,consumer"} if release < "4" else {}


class Scenario:
    """A group, the records that it has to read, and the steps that tests are made of. Each step ends when all records are read.

    The order of the clients gives them roles: the first one changes its subscription, the second one leaves, the last one is static,
    restarts and crashes, and the one in the middle resumes after all others have left.
    """

    def __init__(self, kafka: TestCluster, members: Members, clients: list[Client]) -> None:
        self.kafka = kafka
        self.members = members
        self.history = members.history
        self.clients = clients
        self.topics = {TOPIC}
        self.produced = dict.fromkeys(PARTITIONS, 0)
        self.instances = {client: f"static-{client.library}" for client in clients if client.library != "kafkajs"}

    @property
    def partitions(self) -> set[tuple[str, int]]:
        """The partitions of the topics to which a member subscribes."""
        return {(topic, index) for topic in self.topics for index in range(PARTITIONS[topic])}

    def read_new_records(self) -> None:
        """Produce three records to each partition and wait until they and all before them are read."""
        for topic, index in sorted(self.partitions):
            self.kafka.produce(topic, ["a", "b", "c"], partition=index)
        for topic in self.topics:
            self.produced[topic] += 3
        self.members.wait(self._all_is_read, "all records are read")

    def _all_is_read(self) -> bool:
        owned = self.partitions == self.history.owners.keys()
        return owned and all(self.history.next_offsets[p] == self.produced[p[0]] for p in self.partitions)

    def share(self) -> None:
        """Wait until every partition has an owner and every member partitions, unless the assignor may have left members out."""
        self.members.wait(self._is_shared, f"{self.members.running} share all partitions")
        self.read_new_records()

    def _is_shared(self) -> bool:
        return self.partitions == self.history.owners.keys() and (
            all(map(self.history.owned, self.members.running)) or (self._may_leave_members_out and self._is_settled())
        )

    @property
    def _may_leave_members_out(self) -> bool:
        """Whether a leader may give a member nothing.

        The assignor `range` of kafka-python 3.0.12 groups static and dynamic members without sorting them. If they alternate in the leader's
        JoinGroup response, which has the order of a hash table (GC-28), it forgets some of them, with a real Kafka as well.
        """
        return any((client.library, client.assignor) == ("kafka-python", "range") for client in self.clients)

    def _is_settled(self) -> bool:
        """Return whether the group is stable, has all members, and each of them owns what the leader gave it. Only dynamic members own nothing."""
        group = self.kafka.group(GROUP)
        if any(member.group_instance_id is not None and not member.assignment for member in group.members):
            return False
        assignments = {member.client_id: set(member.assignment) for member in group.members}
        owned = {member: self.history.owned(member) for member in self.members.running}
        return group.state == "Stable" and assignments == owned

    def commit(self) -> None:
        """Let the members commit all that has been produced. The broker then has these offsets."""
        ends = {(topic, index): self.produced[topic] for topic, index in self.partitions}
        self.members.commit(ends)
        stored = self.kafka.committed(GROUP)
        assert {partition: stored.get(partition) for partition in ends} == ends

    def join(self) -> None:
        """Start the members one after the other: the last one is static if its client can."""
        for number, client in enumerate(self.clients):
            is_static = number == len(self.clients) - 1
            self.members.start(f"member-{number}", client, self.instances.get(client) if is_static else None)
            self.share()
        self.commit()

    def change_subscription(self) -> None:
        """Let the first member subscribe to another topic, too. Only this member then gets the records of that topic.

        KafkaJS supports only equal subscriptions: the group leader assigns its own topics to all members. With KafkaJS, all members therefore change
        their subscription.
        """
        changed = self.members.running[: None if self.clients[0].library == "kafkajs" else 1]
        self.topics.add(OTHER_TOPIC)
        for member in changed:
            self.members.send(member, command="subscribe", topics=sorted(self.topics))
        self.share()
        assert {owner for (topic, _), owner in self.history.owners.items() if topic == OTHER_TOPIC} <= set(changed)
        self.commit()

    def restart_static_member(self) -> None:
        """Stop the static member and start it again before its session ends: no other member notices.

        With the classic protocol it is killed. With the new one a new process is refused until the old one has left, or its session ends.
        franz-go 1.22.2 leaves a group of the new protocol without its instance id, which is an invalid request. The new process is then
        refused until the session ends, and the others get its partitions. Two rebalances follow each other: for the old member and the new one.
        """
        last, others, client = self.members.running[-1], self.members.running[:-1], self.clients[-1]
        if client not in self.instances:
            return
        mine, before = self.history.owned(last), self.history.rebalances.copy()
        self.members.prepare("restarted", client)
        if client.protocol == "classic":
            self.members.kill(last)
        else:
            self.members.stop(last)
        self.members.start("restarted", client, self.instances[client])
        if (client.library, client.protocol) == ("franz-go", "consumer"):
            returned = self.history.returned.copy()
            self.share()
            self.history.returned = (
                returned  # a partition that a member gives up for the second rebalance may return to it
            )
            errors = [
                e for request in self.kafka.journal.requests("ConsumerGroupHeartbeat", last) for e in request.errors
            ]
            assert "INVALID_REQUEST" in errors
        else:
            self.members.wait(lambda: self.history.owned("restarted") == mine, f"the restarted member gets {mine}")
            self.read_new_records()
            assert {m: self.history.rebalances[m] for m in others} == {m: before[m] for m in others}
        self.commit()

    def leave(self) -> None:
        """Let the second member leave: the others get its partitions before its session would have ended."""
        start_s = time.monotonic()
        self.members.stop(self.members.running[1])
        self.share()
        assert time.monotonic() - start_s < SESSION_MS / 1000
        self.commit()

    def move_coordinator(self) -> None:
        """Make another broker the leader of the group's partition of the offsets topic."""
        index, before = self.coordinator()
        state = self.kafka.partition(OFFSETS, index)
        self.kafka.elect(OFFSETS, index, next(broker for broker in state.isr if broker != before))
        self.read_new_records()
        self.commit()

    def kill_coordinator(self) -> None:
        """Let the broker that coordinates the group die, and start it again later. Another one takes over after its session with the controller.

        franz-go 1.22.2 sometimes gives its partitions up when it cannot reach the coordinator, and joins again. So partitions may move twice.
        """
        index, broker_id = self.coordinator()
        lost, returned = self.history.lost.copy(), self.history.returned.copy()
        start_s = time.monotonic()
        self.kafka.broker(broker_id).stop()
        assert self.kafka.partition(OFFSETS, index).leader == broker_id
        self.members.wait(lambda: self.coordinator()[1] != broker_id, "another broker coordinates the group")
        assert time.monotonic() - start_s > BROKER_SESSION_MS / 1000
        self.read_new_records()
        self.commit()
        self.kafka.broker(broker_id).start()
        self.read_new_records()
        if any(client.library == "franz-go" for client in self.clients):
            self.history.lost = lost + self._of_others(self.history.lost[len(lost) :])
            self.history.returned = returned  # a partition may move to another member and back

    def _of_others(self, losses: list[tuple[str, Partition]]) -> list[tuple[str, Partition]]:
        """Return the losses of members that do not use franz-go."""
        return [loss for loss in losses if self.members.clients[loss[0]].library != "franz-go"]

    def coordinator(self) -> tuple[int, int]:
        """Return the group's partition of the offsets topic, and its leader."""
        index = java_hash(GROUP) % self.kafka.topics(internal=True)[OFFSETS]
        return index, self.kafka.partition(OFFSETS, index).leader

    def crash(self) -> None:
        """Kill a member that has read more than it has committed: others read it again when the session has ended."""
        self.read_new_records()
        self.members.kill(self.members.running[-1])
        self.share()
        self.commit()

    def end_and_resume(self) -> None:
        """Stop all members. A new one reads only records that are produced later."""
        for member in self.members.running:
            self.members.stop(member)
        assert self.history.owners == {}
        self.topics = {TOPIC}
        self.members.start("resumed", self.clients[len(self.clients) // 2])
        self.share()
        self.members.settle(0.5)
        self.members.stop("resumed")

    def run(self) -> None:
        self.join()
        self.change_subscription()
        self.restart_static_member()
        self.leave()
        self.move_coordinator()
        self.kill_coordinator()
        self.crash()
        self.end_and_resume()
        is_cooperative = self.clients[0].assignor == "cooperative-sticky" or self.clients[0].protocol == "consumer"
        assert bool(self.history.returned) != is_cooperative
        assert self.history.lost == []


def run(release: str, clients: list[Client]) -> None:
    topics = {name: {"partitions": count, "replication_factor": 3} for name, count in PARTITIONS.items()}
    config = (
        SESSION_SETTINGS | WITHOUT_HANDOVER | (new_group_protocol(release) if clients[0].protocol == "consumer" else {})
    )
    with cluster(3, topics=topics, release=release, config=config) as kafka, Members(kafka, GROUP, TOPIC) as members:
        Scenario(kafka, members, clients).run()


@pytest.mark.parametrize(
    ("release", "libraries", "protocol", "assignor"),
    [
        ("4.2", "java confluent-kafka kafka-python aiokafka franz-go", "classic", "range"),
        ("3.9", "aiokafka kafka-python java franz-go confluent-kafka", "classic", "range"),
        ("4.2", "franz-go java confluent-kafka kafka-python", "classic", "cooperative-sticky"),
        ("4.2", "confluent-kafka franz-go java", "consumer", "range"),
    ],
)
def test_members_with_different_client_libraries_share_a_group_and_lose_no_records(
    release: str, libraries: str, protocol: str, assignor: str
) -> None:
    run(release, [Client(library, protocol, assignor) for library in libraries.split()])


@pytest.mark.parametrize(
    ("release", "library", "protocol", "assignor"),
    [
        ("4.2", "java", "classic", "range"),
        ("3.9", "java", "classic", "cooperative-sticky"),
        ("4.2", "java", "consumer", "uniform"),
        ("3.9", "java", "consumer", "range"),
        ("4.2", "confluent-kafka", "classic", "range"),
        ("3.9", "confluent-kafka", "classic", "range"),
        ("4.2", "confluent-kafka", "classic", "cooperative-sticky"),
        ("4.2", "confluent-kafka", "consumer", "range"),
        ("4.2", "kafka-python", "classic", "range"),
        ("3.9", "kafka-python", "classic", "cooperative-sticky"),
        ("4.2", "aiokafka", "classic", "range"),
        ("3.9", "aiokafka", "classic", "range"),
        ("4.2", "franz-go", "classic", "range"),
        ("4.2", "franz-go", "classic", "cooperative-sticky"),
        ("3.9", "franz-go", "classic", "cooperative-sticky"),
        ("4.2", "franz-go", "consumer", "range"),
        ("4.2", "kafkajs", "classic", "RoundRobinAssigner"),
        ("3.9", "kafkajs", "classic", "RoundRobinAssigner"),
    ],
)
def test_three_members_of_one_client_library_share_a_group_and_lose_no_records(
    release: str, library: str, protocol: str, assignor: str
) -> None:
    """Release 3.9 has the group coordinator in Scala, and uses the one in Java if the new protocol is enabled.

    There, only Java can use it: franz-go 1.22.2 and librdkafka 2.16.0 need version 1 of ConsumerGroupHeartbeat, which came with Kafka 4.0.
    Java and kafka-python take the longest, and use each classic assignor with one of the releases.
    """
    run(release, [Client(library, protocol, assignor)] * 3)
