"""What a test can do to a cluster. Every method runs in the broker's loop as a turn of its own, whichever thread calls it.

`TestCluster` (a thread) and `AsyncTestCluster` (the running loop) differ in how they get there and in how they wait.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.config.dynamic import ALL_BROKERS, BrokerResource, Change, Operation, change
from kafkaproto.broker.config.values import as_text, check_topic_settings
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import PartitionState
from kafkaproto.broker.observe import metrics
from kafkaproto.broker.observe.journal import EventSeen, Journal, RequestSeen, ThrottleSeen
from kafkaproto.broker.observe.metrics import Metrics
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.quota.store import QuotaAlteration, QuotaOp
from kafkaproto.broker.replication.fetcher import ReplicaFetcher
from kafkaproto.broker.runtime.clock import JumpClock
from kafkaproto.broker.server.server import Server
from kafkaproto.broker.testing import records
from kafkaproto.broker.testing.options import Default, Topics
from kafkaproto.broker.testing.records import Given, StoredRecord
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.compression import Compression

T = TypeVar("T")
Condition = Callable[[Journal], object]


class Handle(ABC):
    """A running cluster. `server` and `state` are for those who know the inside; the methods are for everybody."""

    def __init__(self, server: Server, topics: Topics) -> None:
        self.server = server
        self.state: Cluster = server.cluster
        self.journal = JournalReader(self)
        self._topics = topics

    @abstractmethod
    def _run(self, action: Callable[[], T]) -> T:
        """Run `action` in the broker's loop and return what it returns."""

    # ---- where it is ---------------------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> list[str]:
        """host:port of each broker, by id."""
        return self.server.bootstrap

    @property
    def bootstrap(self) -> str:
        """The same in one string, as most clients take it."""
        return ",".join(self.server.bootstrap)

    # ---- topics and records --------------------------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = -1,
        configs: Mapping[str, object] | None = None,
        assignment: Mapping[int, Sequence[int]] | None = None,
    ) -> None:
        """assignment: partition to broker ids, the preferred leader first; then the two numbers do not count.

        Raises KafkaError with the code and the message that CreateTopics answers.
        """
        texts = {key: as_text(value) or "" for key, value in (configs or {}).items()}

        def create() -> None:
            controller = self.state.controller
            controller.create_topic(controller.plan_topic(name, partitions, replication_factor, assignment, texts))

        self._run(create)

    def create_topics(self) -> None:
        """The topics that the cluster was made with: name to partitions, or to the arguments of `create_topic`."""
        if not isinstance(self._topics, Mapping):
            raise TypeError(
                f"topics={self._topics!r}: allowed is a dict of names to partitions, for example {{'t': 3}}"
            )
        for name, wanted in self._topics.items():
            if name in self._run(lambda: self.state.topics_left() & self.state.controller.image.topics.keys()):
                continue
            if isinstance(wanted, int):
                self.create_topic(name, wanted)
            else:
                self.create_topic(name, **wanted)  # type: ignore[arg-type]

    def delete_topic(self, name: str) -> None:
        self._run(lambda: self.state.controller.delete_topic(name))

    def alter_topic(self, name: str, **configs: object) -> None:
        """Set topic settings; write dots as underscores: `alter_topic("t", max_message_bytes="2000")`."""
        named = {key.replace("_", "."): as_text(value) or "" for key, value in configs.items()}
        check_topic_settings(named)

        def alter() -> None:
            topic = self.state.controller.image.topics.get(name)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {name}.")
            self.state.controller.set_topic_configs(name, {**topic.configs, **named})

        self._run(alter)

    def produce(
        self,
        topic: str,
        values: Sequence[Given],
        partition: int | None = None,
        compression: Compression = Compression.NONE,
    ) -> list[tuple[int, int]]:
        """Write values, or (key, value) pairs, as acks=1 would; (partition, offset) of each. No client library is needed."""
        return self._run(lambda: records.produce(self.state, topic, values, partition, compression))

    def records(self, topic: str, partition: int | None = None) -> list[StoredRecord]:
        """All that lies in a topic, committed or not, as the leaders hold it."""
        return self._run(lambda: records.stored(self.state, topic, partition))

    def run_retention(self) -> None:
        """Let every replica delete now what has expired, as it does every log.retention.check.interval.ms."""
        self._run(lambda: self.state.log_manager.retention.run(self.state.actions.now_ms))

    def compact(self, topic: str, partition: int) -> None:
        """Clean every replica of a partition now, however little is dirty: all but the open segment, up to the high watermark.

        Raises KafkaError 3 when there is no such partition, 44 when its topic is not compacted, 56 when the store is full.
        """
        self._run(lambda: self.state.log_manager.compaction.clean(topic, partition, self.state.actions.now_ms))

    # ---- quotas --------------------------------------------------------------------------------------------------------------

    def set_quota(
        self,
        *,
        client_id: str | Default | None = None,
        user: str | Default | None = None,
        ip: str | Default | None = None,
        **values: float | None,
    ) -> None:
        """Set producer_byte_rate, consumer_byte_rate, request_percentage or controller_mutation_rate; None removes one.

        client_id, user: whose; `DEFAULT` for all that have none of their own. ip: an address, alone, whose one quota is
        connection_creation_rate. Raises KafkaError 42 for a bad key, value or entity, and then sets nothing.
        """
        components = [
            (kind, None if isinstance(name, Default) else name)
            for kind, name in (("user", user), ("client-id", client_id), ("ip", ip))
            if name is not None
        ]
        ops = [QuotaOp(key, 0.0 if value is None else value, remove=value is None) for key, value in values.items()]
        [result] = self._run(lambda: self.state.quota_store.alter([QuotaAlteration(components, ops)], False))
        if result.error_code:
            raise KafkaError(result.error_code, result.error_message)

    def force_throttle(
        self,
        throttle_ms: int,
        *,
        api: str | None = None,
        client_id: str | None = None,
        user: str | None = None,
        broker_id: int | None = None,
        times: int | None = None,
    ) -> ForcedThrottle:
        """Throttle requests whatever the quotas say: `force_throttle(700, api="Produce", client_id="X", times=3)`.

        Each answer says `throttle_ms`, a Fetch without its data, and mutes its connection for so long (KIP-219). The rule that comes
        back counts in `hits`. Without `times` it holds until `cancel_throttle`. Raises ValueError for what cannot be.
        """
        rule = ForcedThrottle(throttle_ms, api, client_id, user, broker_id, times)
        return self._run(lambda: self.state.forced_throttles.add(rule))

    def cancel_throttle(self, rule: ForcedThrottle) -> None:
        """The rule strikes no more; a mute that goes on is not cut short."""
        self._run(lambda: self.state.forced_throttles.cancel(rule))

    def set_request_cost(self, api: str, cost_ms: float) -> None:
        """What handling one request of an API costs its request-time quota: `set_request_cost("Metadata", 4)`.

        Only under the manual clock: under the others the broker's own handling time is measured. Raises ValueError.
        """
        if self.state.clock.is_wall:
            raise ValueError(
                f"set_request_cost({api!r}, {cost_ms!r}): this clock measures handling time; use clock='manual'"
            )
        self._run(lambda: self.state.set_request_cost(api, cost_ms))

    # ---- metrics -------------------------------------------------------------------------------------------------------------

    def metrics(
        self, name: str | None = None, group: str | None = None, broker: int | None = None, **tags: str
    ) -> Metrics:
        """What Kafka's metrics would say now, by name, group, tags and broker id; those that fit what is given.

        A snapshot: `c.metrics("byte-rate", "Produce", user="alice")`; write dashes in the names of tags as underscores.
        """
        wanted = {(key.replace("_", "-"), value) for key, value in tags.items()}
        found = self._run(lambda: metrics.snapshot(self.state, self.state.actions.now_ms))
        return {
            key: value
            for key, value in found.items()
            if name in (None, key.name)
            and group in (None, key.group)
            and broker in (None, key.broker_id)
            and wanted <= set(key.tags)
        }

    # ---- brokers and replicas ------------------------------------------------------------------------------------------------

    def partition(self, topic: str, index: int) -> PartitionState:
        """Leader, epoch, replicas and in-sync replicas as of now."""

        def find() -> PartitionState:
            state = self.state.controller.image.partition(topic, index)
            if state is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
            return state

        return self._run(find)

    def alter_broker(self, broker_id: int | None = None, **configs: object) -> None:
        """Set what Kafka lets be changed while brokers run, of one broker or of all (None); write dots as underscores, None removes.

        Raises KafkaError 42 with the reason.
        """
        changes = [
            Change(name.replace("_", "."), Operation.DELETE if value is None else Operation.SET, as_text(value))
            for name, value in configs.items()
        ]
        resource = BrokerResource(self.state, ALL_BROKERS if broker_id is None else self.broker(broker_id).broker_id)
        self._run(lambda: change(resource, changes, self.state.strict_kip))

    def elect(self, topic: str, index: int, leader: int) -> None:
        """Make an in-sync replica the leader."""
        self._run(lambda: self.state.controller.elect(topic, index, leader))

    def follower(self, topic: str, index: int, broker_id: int) -> FollowerHandle:
        return FollowerHandle(self, topic, index, self.broker(broker_id).broker_id)

    def broker(self, broker_id: int) -> BrokerHandle:
        if not 0 <= broker_id < len(self.state.nodes):
            raise ValueError(f"broker({broker_id}): ids are 0 to {len(self.state.nodes) - 1}")
        return BrokerHandle(self, broker_id)

    def reset(self) -> None:
        """As if just made: topics, groups, quotas, settings, journal and clock offset gone, connections closed, its own topics back."""

        def act() -> None:
            self.state.reset()
            if isinstance(self.state.clock, JumpClock):
                self.state.clock.reset()

        self._run(act)
        self.create_topics()

    def run_in_loop(self, action: Callable[[], T]) -> T:
        """Anything else, as a turn of its own: `c.run_in_loop(lambda: c.state.timers.next_deadline_ms())`."""
        return self._run(action)

    def explain(self, count: int = 20) -> str:
        """The last requests, newest last, one a line: what to print when a test fails."""
        latest = self._run(lambda: list(self.state.journal.latest(count)))
        return "\n".join(_line(seen) for seen in reversed(latest))


def _line(seen: RequestSeen) -> str:
    throttled = f", throttled {seen.throttle_time_ms} ms" if seen.throttle_time_ms else ""
    return (
        f"{seen.at_ms} broker {seen.broker_id} connection {seen.connection_id} {seen.client_id}: {seen.api} v{seen.api_version} "
        f"#{seen.correlation_id}, {seen.request_bytes} B in, {seen.response_bytes} B out{throttled}"
    )


class JournalReader:
    """The cluster's journal, safe to read from any thread (`Journal` has the meaning of each method)."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def requests(
        self, api: str | None = None, client_id: str | None = None, broker: int | None = None
    ) -> list[RequestSeen]:
        journal = self._handle.state.journal
        return self._handle.run_in_loop(lambda: journal.requests(api, client_id, broker))

    def throttles(self, api: str | None = None, client_id: str | None = None) -> list[ThrottleSeen]:
        return self._handle.run_in_loop(lambda: self._handle.state.journal.throttles(api, client_id))

    def events(self, kind: str | None = None) -> list[EventSeen]:
        return self._handle.run_in_loop(lambda: self._handle.state.journal.events(kind))


class BrokerHandle:
    """One broker of the cluster."""

    def __init__(self, handle: Handle, broker_id: int) -> None:
        self._handle = handle
        self.broker_id = broker_id

    def stop(self) -> None:
        """Like a process that ends: its connections and listeners close, its leaderships go to others."""
        self._handle.run_in_loop(lambda: self._handle.state.stop_broker(self.broker_id))

    def start(self) -> None:
        """It comes back on the same ports with what it had, and catches up."""
        self._handle.run_in_loop(lambda: self._handle.state.start_broker(self.broker_id))

    def cut_link(self, leader: int, cut: bool = True) -> None:
        """Let this broker fetch nothing from broker `leader`, or again. A link is cut both ways by a call on each side."""
        if leader == self.broker_id:
            raise ValueError(
                f"cut_link({leader}) of broker {leader}: ids are 0 to {len(self._handle.state.nodes) - 1}, but its own"
            )
        replicas = self._handle.state.nodes[self.broker_id].replicas
        other = self._handle.broker(leader).broker_id
        self._handle.run_in_loop(lambda: replicas.cut_link(other, cut, self._handle.state.actions.now_ms))


class FollowerHandle:
    """One follower of a partition."""

    def __init__(self, handle: Handle, topic: str, index: int, broker_id: int) -> None:
        self._handle = handle
        self._topic = topic
        self._index = index
        self._broker_id = broker_id

    def hold(self, at: int | None = None) -> None:
        """Take no batch that begins at or above offset `at` (None: nothing more from now on), whoever leads, until `release`."""

        def act() -> None:
            self._fetcher().hold(self._topic, self._index, at, self._handle.state.actions.now_ms)

        self._handle.run_in_loop(act)

    def slow(self, delay_ms: int) -> None:
        """Take what comes `delay_ms` later than it could, fetch by fetch, whoever leads, until `release`."""
        if delay_ms < 0:
            raise ValueError(f"slow({delay_ms}): allowed is 0 or more, for example 500")
        self._handle.run_in_loop(lambda: self._fetcher().slow(self._topic, self._index, delay_ms))

    def release(self) -> None:
        """Neither held nor slow any more."""
        replicas = self._handle.state.nodes[self._broker_id].replicas
        self._handle.run_in_loop(lambda: replicas.release(self._topic, self._index))

    @property
    def log_end_offset(self) -> int:
        replicas = self._handle.state.nodes[self._broker_id].replicas

        def find() -> int:
            found = replicas.find(self._topic, self._index)
            if found is None:
                text = f"Broker {self._broker_id} has no replica of {self._topic}-{self._index}."
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            return found.log.log_end_offset

        return self._handle.run_in_loop(find)

    def _fetcher(self) -> ReplicaFetcher:
        state = self._handle.state
        partition = state.controller.image.partition(self._topic, self._index)
        fetchers = state.nodes[self._broker_id].replicas.fetchers
        if partition is None or partition.leader not in fetchers:
            raise ValueError(f"broker {self._broker_id} does not follow {self._topic}-{self._index}")
        return fetchers[partition.leader]
