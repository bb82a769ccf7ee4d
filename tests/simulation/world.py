"""A cluster of three brokers in virtual time, its clients' connections, and the conversation that a failing seed prints.

Everything random comes from one seed. Some worlds have a data directory: their process can end, be killed, and restart.
Independent of the operations of the clients and the contents of the logs (`client`, `truth`).
"""

from __future__ import annotations

import logging
from random import Random
from typing import TYPE_CHECKING, Any

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import INTERNAL_TOPICS, Topic
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.runtime.clock import ManualClock
from tests.simulation.charges import Charges
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.disk import Disk, Killed
from tests.simulation.group_truth import GroupTruth, RemovedGroups
from tests.simulation.known import Known
from tests.simulation.quotas import Quotas
from tests.simulation.transaction_truth import TransactionTruth
from tests.simulation.truth import Truth

if TYPE_CHECKING:
    from tests.simulation.line import Line

BROKERS = 3
LAG_MAX_MS = 2000
TIDY_MS = 1000
MOST_TOPICS = 7
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
WITH_A_DISK = 0.3
"""The share of worlds with a data directory."""
WITH_QUOTAS = 0.7
"""The share of worlds in which clients set quotas; in the others no client is ever throttled."""
WITH_THE_OLD_COORDINATOR = 0.5
"""The share of worlds of release 3.9 with Kafka's group coordinator in Scala, its default, which has no groups of the new protocol (KIP-848)."""


class Complaints(logging.Handler):
    """Collects errors that the broker logs, because a simulation must fail on them. Errors of a refusing disk are ignored."""

    def __init__(self, disk: Disk | None) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []
        self._disk = disk

    def emit(self, record: logging.LogRecord) -> None:
        line = logging.Formatter().format(record)
        if self._disk is None or not self._disk.is_to_blame(line):
            self.lines.append(line)


class World:
    """The world of one seed. chance: the source of all randomness. messages: (virtual ms, sender, content) of each frame, event and fault."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = Random(seed)
        config = {
            "replica.selector.class": RACK_AWARE,
            "min.insync.replicas": "2",
            "auto.create.topics.enable": "false",
            "replica.lag.time.max.ms": str(LAG_MAX_MS),
            "log.retention.check.interval.ms": str(TIDY_MS),
            "log.cleaner.backoff.ms": str(TIDY_MS),
            "replica.fetch.max.bytes": chance.choice(["1048576", "300"]),
            "kafkaproto.replica.delay.ms": chance.choice(["0", "0", "40"]),
            "auto.leader.rebalance.enable": chance.choice(["true", "false"]),
            "leader.imbalance.check.interval.seconds": "5",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "2",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            "kafkaproto.transaction.completion.ms": chance.choice(["0", "1", "50"]),
            "group.consumer.migration.policy": chance.choice(
                ["bidirectional", "bidirectional", "upgrade", "downgrade", "disabled"]
            ),
            "group.initial.rebalance.delay.ms": chance.choice(["0", "500"]),
            "group.consumer.session.timeout.ms": "6000",
            "group.consumer.min.session.timeout.ms": "6000",
            "group.consumer.heartbeat.interval.ms": "2000",
            "group.consumer.min.heartbeat.interval.ms": "2000",
            "max.incremental.fetch.session.cache.slots": chance.choice(["1000", "1000", "2"]),
            **{f"{broker_id}.broker.rack": f"r{broker_id}" for broker_id in range(BROKERS)},
        }
        self.semantics = chance.choice(["kafka", "kip"])
        self.release = chance.choice(["3.9", "3.9", "4.1", "4.2"])
        is_old = Random(f"old coordinator {seed}").random() < WITH_THE_OLD_COORDINATOR  # leaves `chance` as it is
        self.has_old_coordinator = self.release == "3.9" and is_old
        """Whether Kafka's group coordinator in Scala serves the groups."""
        config["group.coordinator.rebalance.protocols"] = "classic" if self.has_old_coordinator else "classic,consumer"
        if self.release == "3.9":  # later releases have no segments below 1 MiB
            config |= dict.fromkeys(("offsets.topic.segment.bytes", "transaction.state.log.segment.bytes"), "2000")
        self.disk = Disk(chance) if chance.random() < WITH_A_DISK else None
        self.disk_delay_ms: dict[int, int] = {}
        """The delay of each broker with a slow disk, in ms."""
        self.lines: list[Line] = []
        self.groups: list[GroupTruth] = []
        self._producer_ids: set[int] = set()
        self._config = config
        self._seed = seed
        self._complaints = Complaints(self.disk)
        self._logger = logging.getLogger("kafkaproto")
        self._logger.addHandler(self._complaints)
        self.cluster = self._new_cluster(ManualClock())
        self.messages: list[tuple[int, str, object]] = []
        self.transactions = TransactionTruth()
        self.truth = Truth(self.cluster.state, self.transactions)
        self.has_quotas = chance.random() < WITH_QUOTAS
        self.client_ids: list[str | None] = ["test", "limited", "other"]
        """Client ids, some of them repeated so that several clients share a quota, or None."""
        if chance.random() < 0.5:
            self.client_ids += ["", None]
        self.quotas = Quotas(self.semantics, BROKERS)
        self.charges = Charges(self)
        self.limited_ms = 0
        """The time during which a quota was set, without skipped time."""

    def _new_cluster(self, clock: ManualClock) -> SimulatedCluster:
        data_dir = None if self.disk is None else self.disk.path
        cluster = SimulatedCluster(
            BROKERS,
            self._config,
            semantics=self.semantics,
            release_name=self.release,
            seed=self._seed,
            clock=clock,
            data_dir=data_dir,
        )
        cluster.state.events.attach(RemovedGroups(self.groups))
        return cluster

    def close(self) -> None:
        self.charges.close()
        self._logger.removeHandler(self._complaints)
        if self.disk is not None:
            self.disk.close()
        self.cluster.state.stores.close()

    # ---- another process -------------------------------------------------------------------------------------------------------

    @property
    def refuses(self) -> bool:
        """Return whether the disk refuses to write."""
        return self.disk is not None and self.disk.refuses != 0

    def end_process(self) -> None:
        """End the process normally and start another one."""
        self.charges.check_whole()
        known_state = Known(self.cluster.state, in_a_step=False)
        self.cluster.state.close()
        self._restart(known_state)

    def kill_process(self) -> None:
        """Kill the process between two steps and start another one."""
        self.charges.check_whole()
        self._restart(Known(self.cluster.state, in_a_step=False))

    def was_killed(self) -> None:
        """Start another process after the process died in the middle of a step."""
        self.say("fault", "the process was killed in the middle of this")
        self._restart(Known(self.cluster.state, in_a_step=True))

    def _restart(self, known: Known) -> None:
        disk = self.disk
        assert disk is not None
        clock = self.cluster.clock
        for line in self.lines:
            line.cut()
        self.lines.clear()
        self.charges.lines.clear()
        self.disk_delay_ms.clear()
        self.cluster.state.stores.close()
        disk.next_process()
        clock.advance(self.chance.choice([0, 100, 5000]))
        if self.chance.random() < 0.2:
            disk.kill_at_write(self.chance.randrange(1, 20))
        while True:
            try:
                cluster = self._new_cluster(clock)
            except Killed:
                self.say("fault", "killed while it began")
                disk.next_process()
            except ConfigError as error:
                assert disk.is_to_blame(str(error)), f"the process did not start: {error}"  # noqa: PT017
                self.say("fault", "did not begin on a disk that refuses; the disk is well again")
                disk.refuses = 0
                disk.next_process()
            else:
                break
        self.cluster = cluster
        disk.spare()
        cuts = cluster.state.journal.events("recovery")
        assert disk.was_torn or not cuts, f"recovery truncated complete writes: {cuts}"
        disk.was_torn = False
        self.say("fault", "another process starts")
        self.truth.restart(cluster.state, known.forgets_elections)
        known.check(cluster.state)
        self.quotas.restart(cluster.state.quota_store.all(), known.in_a_step)

    @property
    def now_ms(self) -> int:
        return self.cluster.now_ms

    @property
    def image(self) -> Any:
        return self.cluster.state.controller.image

    @property
    def topics(self) -> dict[str, Topic]:
        """Return the topics that clients use."""
        return {name: topic for name, topic in self.image.topics.items() if name not in INTERNAL_TOPICS}

    def say(self, who: str, what: object) -> None:
        self.messages.append((self.now_ms, who, what))

    def running(self) -> list[int]:
        return [node.broker_id for node in self.cluster.state.nodes if node.running]

    def replica(self, broker_id: int, topic: str, index: int) -> Partition | None:
        """Return the replica on a broker, or None if there is none: the broker does not run, or `broker_id` is -1, as for a missing leader."""
        node = self.cluster.state.nodes.running(broker_id)
        return None if node is None else node.replicas.partitions.get((topic, index))

    def leader(self, topic: str, index: int) -> Partition | None:
        """Return the replica that leads, or None if there is no leader."""
        state = self.image.partition(topic, index)
        return None if state is None or state.leader < 0 else self.replica(state.leader, topic, index)

    def new_producer_id(self) -> int:
        """Return a new producer id, unique across processes; -1 while the disk refuses to store it."""
        try:
            producer_id = self.cluster.state.nodes[0].transactions.producer_ids.take()
        except KafkaError:
            assert self.refuses
            return -1
        assert producer_id not in self._producer_ids, f"producer id {producer_id} was assigned before"
        self._producer_ids.add(producer_id)
        return producer_id

    def check(self) -> None:
        """Check the invariants after a step. Raises AssertionError."""
        assert not self._complaints.lines, f"the broker logged an error: {self._complaints.lines[0]}"
        self.truth.check(self.now_ms)
        for group in self.groups:
            group.check(self.cluster.state)
        self.transactions.check(self.cluster.state)

    def advance(self, delta_ms: int) -> None:
        """Let time pass in small parts, with checks in between."""
        while delta_ms > 0:
            part = min(delta_ms, 500)
            self.cluster.advance(part)
            self.limited_ms += part if self.quotas.any else 0
            delta_ms -= part
            self.check()

    def skip(self, delta_ms: int) -> None:
        """Let time pass without checks."""
        self.cluster.advance(delta_ms)
        self.check()
