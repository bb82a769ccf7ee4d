"""What brokers do to their logs as time goes by: retention, compaction, forgetting idle producers (`LogManager`, `LogCleaner`).

Kafka looks at every log at fixed intervals. This looks at those instants only at which something can have come due, and costs an
idle cluster no event. Each replica is judged by itself (N-15). Must never know wire messages or clients.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Protocol

from kafkaproto.broker.config.values import BrokerConfig
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log import compaction, retention
from kafkaproto.broker.log.compaction import CleaningLimits
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.retention import Expiry, RetentionLimits
from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode

logger = logging.getLogger("kafkaproto.log")


class Replica(Protocol):
    """A replica as log maintenance sees it: `replication.partition.Partition`, of which this room knows no more.

    cleaning: the limits of compaction, None if the topic is not compacted. expiry: the result of the latest look for expired records.
    """

    topic: str
    index: int
    log: ReplicaLog
    retention: RetentionLimits
    cleaning: CleaningLimits | None
    expiry: Expiry | None

    def expired(self, now_ms: int) -> None:
        """React to the deletion of expired records."""


Replicas = Callable[[], Iterable[Replica]]
"""Returns all replicas on running brokers."""


class LogTask(ABC):
    """One kind of work. interval: the setting (ms) that says how often Kafka looks."""

    interval: str

    def __init__(self, config: BrokerConfig, timers: Timers, partitions: Replicas, looked: Callable[[], None]) -> None:
        self.config = config
        self.partitions = partitions
        self._timers = timers
        self._looked = looked
        self._timer: Timer | None = None

    @abstractmethod
    def run(self, now_ms: int) -> None:
        """Do what is due."""

    @abstractmethod
    def due_ms(self, partition: Replica, now_ms: int) -> int | None:
        """When there may be something to do at this replica if nothing else happens, None if there never will."""

    def look_soon(self, now_ms: int) -> None:
        """Something changed: look one interval from now, or earlier if that is planned."""
        self._look_at(now_ms + self._interval_ms)

    def rest(self) -> None:
        """Look no more, until something changes."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _interval_ms(self) -> int:
        return max(1, int(self.config[self.interval]))

    def _look_at(self, at_ms: int) -> None:
        timer = self._timer
        if timer is None or timer.callback is None or timer.at_ms > at_ms:
            if timer is not None:
                timer.cancel()
            self._timer = self._timers.at(at_ms, self._look)

    def _look(self, now_ms: int) -> None:
        self._looked()
        self.run(now_ms)
        found = (self.due_ms(partition, now_ms) for partition in self.partitions())
        due_ms = min((at_ms for at_ms in found if at_ms is not None), default=None)
        if due_ms is not None:
            interval_ms = self._interval_ms
            self._look_at(now_ms + max(1, -(-(due_ms - now_ms) // interval_ms)) * interval_ms)


class Retention(LogTask):
    """What is too old or too much goes."""

    interval = "log.retention.check.interval.ms"

    def run(self, now_ms: int) -> None:
        for partition in self.partitions():
            due_ms = self.due_ms(partition, now_ms)
            if partition.retention.size_bytes >= 0 or (due_ms is not None and now_ms >= due_ms):
                partition.expiry = None
                try:
                    if retention.expire(partition.log, partition.retention, now_ms):
                        partition.expired(now_ms)
                except StorageError as error:
                    logger.error("%s keeps what has expired: %s", partition, error)

    def due_ms(self, partition: Replica, now_ms: int) -> int | None:
        log, known = partition.log, partition.expiry
        if known is None or not known.holds(log, partition.retention):
            known = partition.expiry = retention.next_expiry(log, partition.retention)
        return known.at_ms


class Compaction(LogTask):
    """What is superseded goes, where enough is."""

    interval = "log.cleaner.backoff.ms"

    def run(self, now_ms: int) -> None:
        if not self.config["log.cleaner.enable"]:
            return
        shared: compaction.Shared = {}
        for partition in self.partitions():
            limits = partition.cleaning
            if limits is not None and compaction.is_due(partition.log, limits, now_ms):
                try:
                    compaction.clean(partition.log, limits, now_ms, shared)
                except StorageError as error:
                    logger.error("%s cannot be cleaned: %s", partition, error)

    def clean(self, topic: str, index: int, now_ms: int) -> None:
        """Clean the replicas of one partition, however little is dirty. Raises KafkaError 3, 44, 56."""
        replicas = [p for p in self.partitions() if (p.topic, p.index) == (topic, index)]
        if not replicas:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
        shared: compaction.Shared = {}
        for partition in replicas:
            if partition.cleaning is None:
                raise KafkaError(ErrorCode.POLICY_VIOLATION, f"cleanup.policy of {topic} does not compact.")
            try:
                compaction.clean(partition.log, partition.cleaning, now_ms, shared)
            except StorageError as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def due_ms(self, partition: Replica, now_ms: int) -> int | None:
        if partition.cleaning is None or not self.config["log.cleaner.enable"]:
            return None
        return compaction.next_due_ms(partition.log, partition.cleaning, now_ms)


class ProducerExpiry(LogTask):
    """Producers that have been idle for long are forgotten (P-17)."""

    interval = "producer.id.expiration.check.interval.ms"

    def run(self, now_ms: int) -> None:
        for partition in self.partitions():
            partition.log.producers.expire(now_ms, self.config["producer.id.expiration.ms"])

    def due_ms(self, partition: Replica, now_ms: int) -> int | None:
        oldest_ms = partition.log.producers.longest_idle_since_ms()
        return None if oldest_ms is None else oldest_ms + int(self.config["producer.id.expiration.ms"])


class LogManager:
    """All chores of a cluster."""

    def __init__(self, config: BrokerConfig, timers: Timers, partitions: Replicas) -> None:
        self._is_idle = True
        self.retention = Retention(config, timers, partitions, self._looked)
        self.compaction = Compaction(config, timers, partitions, self._looked)
        self.producer_expiry = ProducerExpiry(config, timers, partitions, self._looked)

    @property
    def _tasks(self) -> tuple[LogTask, ...]:
        return self.retention, self.compaction, self.producer_expiry

    def _looked(self) -> None:
        self._is_idle = True

    def rest(self) -> None:
        """Look for no work until `wake`."""
        self._is_idle = True
        for task in self._tasks:
            task.rest()

    def wake(self, now_ms: int) -> None:
        """Records came, settings or replicas changed: what looks for work looks at its next instant."""
        if self._is_idle:
            self._is_idle = False
            for task in self._tasks:
                task.look_soon(now_ms)
