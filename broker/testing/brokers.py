"""The methods of a test cluster for brokers and followers: stop and start a broker, delay or stop the fetches of a follower."""

from __future__ import annotations

from kafkaproto.broker.config.dynamic import ALL_BROKERS, BrokerResource, Change, Operation, change
from kafkaproto.broker.config.values import as_text
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.replication.fetcher import ReplicaFetcher
from kafkaproto.broker.testing.arguments import check_int, check_text, counted
from kafkaproto.broker.testing.base import Base
from kafkaproto.broker.testing.tracebacks import is_hidden
from kafkaproto.error_codes import ErrorCode

__tracebackhide__ = is_hidden


class BrokerMethods(Base):
    """A base class of test clusters, with the methods for brokers and their replicas."""

    def alter_broker(self, broker_id: int | None = None, **configs: object) -> None:
        """Change dynamic settings of one broker, or of all if `broker_id` is None. The value None removes a setting.

        Write dots in the names of settings as underscores: `alter_broker(log_retention_ms=1000)`. Raises KafkaError INVALID_REQUEST (42), with the
        reason, if a setting cannot be changed or a value is invalid, and ValueError for an unknown broker id.
        """
        changes = [
            Change(name.replace("_", "."), Operation.DELETE if value is None else Operation.SET, as_text(value))
            for name, value in configs.items()
        ]
        resource = BrokerResource(self.state, ALL_BROKERS if broker_id is None else checked_broker(self, broker_id))
        self._run(lambda: change(resource, changes, self.state.strict_kip))

    def elect(self, topic: str, index: int, leader: int) -> None:
        """Make the in-sync replica on broker `leader` the leader of partition `index` of a topic. Raises ValueError for an unknown broker id.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) for an unknown partition, PREFERRED_LEADER_NOT_AVAILABLE (80) if the broker does not
        run or its replica is not in sync.
        """
        check_text("topic", topic, "orders")
        check_int("index", index, example=0)
        checked_broker(self, leader)
        self._run(lambda: self.state.controller.elect(topic, index, leader))

    def follower(self, topic: str, index: int, broker_id: int) -> FollowerHandle:
        """Return a handle on the follower of partition `index` of a topic on broker `broker_id`. Raises ValueError for an unknown broker id."""
        check_text("topic", topic, "orders")
        check_int("index", index, example=0)
        return FollowerHandle(self, topic, index, checked_broker(self, broker_id))

    def broker(self, broker_id: int) -> BrokerHandle:
        """Return a handle on one broker. Raises ValueError for an unknown id."""
        return BrokerHandle(self, checked_broker(self, broker_id))


def checked_broker(cluster: Base, broker_id: int) -> int:
    """Return `broker_id` unchanged. Raises TypeError unless it is an int, ValueError if there is no such broker."""
    check_int("broker_id", broker_id, example=0)
    ids = cluster.state.nodes.ids
    if broker_id not in ids:
        raise ValueError(f"there is no broker {broker_id}: ids are {ids[0]} to {ids[-1]}")
    return broker_id


class BrokerHandle:
    """Controls one broker of a test cluster."""

    def __init__(self, cluster: Base, broker_id: int) -> None:
        self._cluster = cluster
        self.broker_id = broker_id
        """The id of the broker."""

    def __repr__(self) -> str:
        state = self._cluster.state
        topics = state.controller.image.topics.values()
        leader_count = sum(partition.leader == self.broker_id for topic in topics for partition in topic.partitions)
        running = "running" if self._cluster.is_running and state.nodes[self.broker_id].running else "stopped"
        address = self._cluster.server.bootstrap[self.broker_id]
        return f"<broker {self.broker_id} at {address}, {running}, leader of {counted(leader_count, 'partition')}>"

    def stop(self) -> None:
        """Stop the broker, like a process that ends: connections and listeners close, other replicas become leaders.

        With `controlled.shutdown.enable=false` the other replicas become leaders only `broker.session.timeout.ms` after the broker's last heartbeat.
        """
        self._cluster.run_in_loop(lambda: self._cluster.state.stop_broker(self.broker_id))

    def start(self) -> None:
        """Start the broker again, on the same ports and with the same logs. Its replicas catch up with the leaders."""
        self._cluster.run_in_loop(lambda: self._cluster.state.start_broker(self.broker_id))

    def cut_link(self, leader: int, cut: bool = True) -> None:
        """Stop this broker from fetching from broker `leader`; cut=False lets it fetch again.

        To cut the link in both directions, call this on both brokers. Raises ValueError for the broker's own id and for an unknown id.
        """
        if leader == self.broker_id:
            ids = self._cluster.state.nodes.ids
            raise ValueError(
                f"leader must not be the broker's own id (got {leader}); broker ids are {ids[0]} to {ids[-1]}"
            )
        replicas = self._cluster.state.nodes[self.broker_id].replicas
        other = checked_broker(self._cluster, leader)
        self._cluster.run_in_loop(lambda: replicas.cut_link(other, cut, self._cluster.state.actions.now_ms))


class FollowerHandle:
    """Controls one follower of a partition in a test cluster."""

    def __init__(self, cluster: Base, topic: str, index: int, broker_id: int) -> None:
        self._cluster = cluster
        self._topic = topic
        self._index = index
        self._broker_id = broker_id

    def __repr__(self) -> str:
        return f"<follower of {self._topic}-{self._index} on broker {self._broker_id}>"

    def hold(self, at: int | None = None) -> None:
        """Stop this follower from fetching batches that begin at or above offset `at`, until `release` is called.

        If `at` is None, the fetches stop at the follower's current log end offset. A change of the leader does not end the effect.
        Raises ValueError if the broker does not follow the partition now.
        """
        if at is not None:
            check_int("at", at, 0, example=100)

        def act() -> None:
            self._fetcher().hold(self._topic, self._index, at, self._cluster.state.actions.now_ms)

        self._cluster.run_in_loop(act)

    def slow(self, delay_ms: int) -> None:
        """Delay each fetch of this follower by `delay_ms` until `release`, even after a change of the leader.

        Raises ValueError for a negative delay, and if the broker does not follow the partition now.
        """
        check_int("delay_ms", delay_ms, 0, example=500)
        self._cluster.run_in_loop(lambda: self._fetcher().slow(self._topic, self._index, delay_ms))

    def release(self) -> None:
        """End `hold` and `slow` for this follower, so that it fetches normally again."""
        replicas = self._cluster.state.nodes[self._broker_id].replicas
        self._cluster.run_in_loop(lambda: replicas.release(self._topic, self._index))

    @property
    def log_end_offset(self) -> int:
        """Return the offset that the next record of this replica gets. Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if there is no replica."""
        replicas = self._cluster.state.nodes[self._broker_id].replicas

        def find() -> int:
            replica = replicas.find(self._topic, self._index)
            if replica is None:
                text = (
                    f"Broker {self._broker_id} has no replica of {self._topic}-{self._index}; partition({self._topic!r}, "
                    f"{self._index}).replicas lists the brokers that have one."
                )
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            return replica.log.log_end_offset

        return self._cluster.run_in_loop(find)

    def _fetcher(self) -> ReplicaFetcher:
        state = self._cluster.state
        partition = state.controller.image.partition(self._topic, self._index)
        fetchers = state.nodes[self._broker_id].replicas.fetchers
        fetcher = None if partition is None else fetchers.get(partition.leader)
        if fetcher is None or (self._topic, self._index) not in fetcher.partitions:
            raise ValueError(
                f"broker {self._broker_id} does not follow {self._topic}-{self._index}; choose a running broker that has a "
                "replica of the partition, but does not lead it"
            )
        return fetcher
