"""Three brokers in virtual time for tests of transactions, with the producer of the conformance suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkaproto.broker.metadata.image import PartitionState
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.broker.transaction.transaction import Transaction
from kafkaproto.conformance.scene import Topic, new_topic
from kafkaproto.conformance.transactions import Producer
from kafkaproto.partitioner import java_hash
from tests.support.conformance.virtual import BROKERS, Virtual

TRANSACTIONS = "__transaction_state"


class TransactionBench(Virtual):
    """Three brokers with replicated internal topics. settings: override those of the brokers. newer: whether to emulate Kafka 4.2.

    data_dir: the data directory; None for brokers that keep nothing.
    """

    def __init__(
        self,
        settings: dict[str, str] | None = None,
        *,
        newer: bool = False,
        data_dir: Path | None = None,
        semantics: str = "kip",
    ) -> None:
        super().__init__("default", "kafka")
        defaults = {"auto.create.topics.enable": "false", "transaction.state.log.min.isr": "1"}
        self._settings = defaults | (settings or {})
        self._options: dict[str, Any] = {"data_dir": data_dir, "semantics": semantics}
        if newer:
            self._options["release_name"] = "4.2"
        self.cluster = VirtualCluster(BROKERS, self._settings, **self._options)

    def crash_and_restart(self) -> None:
        """Kill the process, and start another one with the same data directory."""
        assert self.cluster.state.persistence is not None
        self.cluster.state.persistence.abandon()
        self.close_connections()
        self.cluster = VirtualCluster(BROKERS, self._settings, clock=self.cluster.clock, **self._options)

    def topic(self, partitions: int = 1) -> Topic:
        """Return a new topic with three replicas of each partition; broker 0 leads the first one."""
        return new_topic(self, partitions=partitions, replication=BROKERS)

    def transaction(self, producer: Producer) -> Transaction:
        """Return the state of a producer on its coordinator."""
        transaction = self.cluster.state.nodes[producer.coordinator()].transactions.coordinator.store.get(producer.id)
        assert transaction is not None
        return transaction

    def state_partition(self, producer: Producer) -> PartitionState:
        """Return the partition of the transaction topic that has a producer."""
        partitions = self.cluster.state.controller.image.topics[TRANSACTIONS].partitions
        return partitions[java_hash(producer.id) % len(partitions)]

    def move(self, producer: Producer) -> None:
        """Make another broker the coordinator of a producer."""
        state = self.state_partition(producer)
        new = next(replica for replica in state.isr if replica != state.leader)
        self.cluster.state.controller.elect(TRANSACTIONS, state.index, new)
        self.cluster.run()
        assert producer.coordinator() == new

    def begin(self, topic: Topic, *, timeout_ms: int = 60_000) -> Producer:
        """Return a producer with an open transaction, which has one record in the first partition."""
        producer = Producer(self)
        producer.init(timeout_ms=timeout_ms)
        assert producer.add({topic.name: [0]}) == {(topic.name, 0): 0}
        assert producer.send(topic, 0)[0] == 0
        return producer
