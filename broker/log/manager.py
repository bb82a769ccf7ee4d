"""Periodic log maintenance: retention, compaction, flushes, expiry of idle producers (`LogManager` and `LogCleaner` in Kafka).

Kafka checks every log at fixed intervals. This module skips the checks at which no log can need work, so an idle cluster has no timer
events. Each replica is checked independently (N-15). This module does not depend on wire messages or clients.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from kafkaproto.broker.config.cluster_config import BrokerConfig
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log import compaction, retention
from kafkaproto.broker.log.cleaner_rate import CleanerRate
from kafkaproto.broker.log.compaction import CleaningLimits
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.flushing import NO_FLUSH
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.log.retention import Expiry, RetentionLimits
from kafkaproto.broker.runtime.timers import Timer, Timers
from kafkaproto.error_codes import ErrorCode

logger = logging.getLogger("kafkaproto.log")


class Replica(Protocol):
    """Interface of a replica, with the attributes and methods that log maintenance uses. `replication.partition.Partition` implements it.

    cleaning: the topic's settings for compaction, such as min.compaction.lag.ms; None if the topic is not compacted. expiry: when the oldest segment
    expires, as the latest retention check computed; None before the first check, and after segments were deleted.
    """

    topic: str
    index: int
    log: ReplicaLog
    retention: RetentionLimits
    cleaning: CleaningLimits | None
    expiry: Expiry | None

    def expired(self, now_ms: int) -> None:
        """Check again whether requests that wait for this replica are complete, because its log start offset has risen.

        Call it after retention has deleted segments. If the replica is a follower, its next fetch reports the new log start offset to the leader.
        """


Replicas = Callable[[], Iterable[Replica]]
"""A function that returns all replicas on running brokers."""


class LogTask(ABC):
    """A periodic maintenance task for all replicas, such as retention or compaction.

    A check does the work that is due, and schedules the next check for the earliest time at which more work may be due. If no work is expected, no
    check is scheduled.

    interval: the name of the setting with the time between two checks in ms. earliest_ms: the time in ms before which there is no check. looked: a
    function that each check calls first. After this call, the next `LogManager.wake` (after an append or a change of settings) schedules checks
    again.
    """

    interval: str
    earliest_ms = 0

    def __init__(self, config: BrokerConfig, timers: Timers, partitions: Replicas, looked: Callable[[], None]) -> None:
        self.config = config
        self.partitions = partitions
        self._timers = timers
        self._looked = looked
        self._timer: Timer | None = None

    @abstractmethod
    def run(self, now_ms: int) -> None:
        """Do the maintenance work of this task, such as compaction, that is due at `now_ms`, for all replicas."""

    @abstractmethod
    def due_ms(self, partition: Replica, now_ms: int) -> int | None:
        """Return when (time in ms) the replica needs this task next, provided that nothing is appended or changed before; None if never."""

    def look_soon(self, now_ms: int) -> None:
        """Schedule a check of all logs after one check interval, unless an earlier check is already scheduled."""
        self._look_at(now_ms + self._interval_ms)

    def cancel_check(self) -> None:
        """Cancel the next check of the logs. No other check takes place until `look_soon` is called."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _interval_ms(self) -> int:
        return max(1, int(self.config[self.interval]))

    def _look_at(self, at_ms: int) -> None:
        at_ms = max(at_ms, self.earliest_ms)
        timer = self._timer
        if timer is None or timer.callback is None or timer.at_ms > at_ms:
            if timer is not None:
                timer.cancel()
            self._timer = self._timers.at(at_ms, self._check_logs)

    def _check_logs(self, now_ms: int) -> None:
        self._looked()
        self.run(now_ms)
        due_times = (self.due_ms(partition, now_ms) for partition in self.partitions())
        due_ms = min((at_ms for at_ms in due_times if at_ms is not None), default=None)
        if due_ms is not None:
            interval_ms = self._interval_ms
            self._look_at(now_ms + max(1, -(-(due_ms - now_ms) // interval_ms)) * interval_ms)


class Retention(LogTask):
    """The periodic task that deletes the oldest segments of each log that are too old, or that make the log too large."""

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
                    logger.error("partition %s: expired segments cannot be deleted: %s", partition, error)

    def due_ms(self, partition: Replica, now_ms: int) -> int | None:
        log, log_expiry = partition.log, partition.expiry
        if log_expiry is None or not log_expiry.holds(log, partition.retention):
            log_expiry = partition.expiry = retention.next_expiry(log, partition.retention)
        return log_expiry.at_ms


class Compaction(LogTask):
    """The periodic task that compacts logs.

    A log is due if a large enough part is dirty (not compacted yet), or if a part has been dirty for max.compaction.lag.ms. After a cleaning,
    log.cleaner.io.max.bytes.per.second can make a broker wait. When the wait ends, there is a further check. If the rate is limited, the dirtiest
    logs are cleaned first.
    """

    interval = "log.cleaner.backoff.ms"

    def __init__(self, config: BrokerConfig, timers: Timers, partitions: Replicas, looked: Callable[[], None]) -> None:
        super().__init__(config, timers, partitions, looked)
        self._rate = CleanerRate(config)

    def run(self, now_ms: int) -> None:
        if not self.config["log.cleaner.enable"]:
            return
        shared: compaction.Shared = {}
        for partition, limits in self._due(now_ms):
            broker_id = partition.log.origin.broker_id
            free_ms = self._rate.free_ms(broker_id)
            if now_ms < free_ms:
                if free_ms < math.inf:
                    self._look_at(math.ceil(free_ms))
                continue
            try:
                size_bytes = compaction.clean(partition.log, limits, now_ms, shared)
            except StorageError as error:
                logger.error("partition %s cannot be compacted: %s", partition, error)
            else:
                self._rate.cleaned(broker_id, size_bytes, now_ms)

    def _due(self, now_ms: int) -> Sequence[tuple[Replica, CleaningLimits]]:
        """Return the replicas that are due for compaction, with their settings; if the rate of a broker is limited, the dirtiest come first."""
        due = [
            (partition, partition.cleaning)
            for partition in self.partitions()
            if partition.cleaning is not None and compaction.is_due(partition.log, partition.cleaning, now_ms)
        ]
        if len(due) > 1 and any(self._rate.limits(partition.log.origin.broker_id) for partition, _ in due):
            due.sort(key=lambda item: -compaction.cleanable(item[0].log, item[1], now_ms).dirty_ratio)
        return due

    def cancel_check(self) -> None:
        super().cancel_check()
        self._rate.clear()

    def clean(self, topic: str, index: int, now_ms: int) -> None:
        """Compact all replicas of one partition now, however small the dirty part is.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION (3) if there is no such partition, POLICY_VIOLATION (44) if the topic is not compacted, or
        KAFKA_STORAGE_ERROR (56) if the result cannot be written.
        """
        replicas = [p for p in self.partitions() if (p.topic, p.index) == (topic, index)]
        if not replicas:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"There is no partition {topic}-{index}: the topic does not exist or has fewer partitions.",
            )
        shared: compaction.Shared = {}
        for partition in replicas:
            if partition.cleaning is None:
                raise KafkaError(
                    ErrorCode.POLICY_VIOLATION,
                    f"Topic {topic} is not compacted: its cleanup.policy does not contain compact.",
                )
            try:
                compaction.clean(partition.log, partition.cleaning, now_ms, shared)
            except StorageError as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def due_ms(self, partition: Replica, now_ms: int) -> int | None:
        if partition.cleaning is None or not self.config["log.cleaner.enable"]:
            return None
        return compaction.next_due_ms(partition.log, partition.cleaning, now_ms)


class ProducerExpiry(LogTask):
    """The periodic task that removes the state of idempotent producers which have been idle for too long (P-17)."""

    interval = "producer.id.expiration.check.interval.ms"

    def run(self, now_ms: int) -> None:
        for partition in self.partitions():
            partition.log.producers.expire(now_ms, self.config["producer.id.expiration.ms"])

    def due_ms(self, partition: Replica, now_ms: int) -> int | None:
        oldest_ms = partition.log.producers.longest_idle_since_ms()
        return None if oldest_ms is None else oldest_ms + int(self.config["producer.id.expiration.ms"])


class Flushing(LogTask):
    """The periodic task that flushes logs to the disk with fsync once flush.ms has passed since their last flush.

    As in Kafka, nothing is flushed by time unless `log.flush.scheduler.interval.ms` is set: by default there are no checks.
    """

    interval = "log.flush.scheduler.interval.ms"

    def look_soon(self, now_ms: int) -> None:
        if 0 < int(self.config[self.interval]) < NO_FLUSH:
            super().look_soon(now_ms)

    def run(self, now_ms: int) -> None:
        for partition in self.partitions():
            due_ms = self.due_ms(partition, now_ms)
            if due_ms is not None and now_ms >= due_ms:
                store = partition.log.store
                try:
                    store.flush(store.flush_state.flushed_position, now_ms)
                except StorageError as error:
                    logger.error("partition %s: %s", partition, error)

    def due_ms(self, partition: Replica, now_ms: int) -> int | None:
        store = partition.log.store
        return None if store.folder is None else store.flush_state.due_ms(store.end_position)


class LogManager:
    """All log maintenance tasks of a cluster. No check is scheduled before the first call of `wake`.

    started_ms: the start of the cluster. As in Kafka, retention and flushes begin `log.initial.task.delay.ms` later.
    """

    def __init__(self, config: BrokerConfig, timers: Timers, partitions: Replicas, started_ms: int) -> None:
        self._is_idle = True
        self.retention = Retention(config, timers, partitions, self._looked)
        self.compaction = Compaction(config, timers, partitions, self._looked)
        self.producer_expiry = ProducerExpiry(config, timers, partitions, self._looked)
        self.flushing = Flushing(config, timers, partitions, self._looked)
        self.retention.earliest_ms = self.flushing.earliest_ms = started_ms + int(config["log.initial.task.delay.ms"])

    @property
    def _tasks(self) -> tuple[LogTask, ...]:
        return self.retention, self.compaction, self.producer_expiry, self.flushing

    def _looked(self) -> None:
        self._is_idle = True

    def cancel_check(self) -> None:
        """Stop checking the logs for retention, compaction, flushes and expiry of producers, until `wake` is called."""
        self._is_idle = True
        for task in self._tasks:
            task.cancel_check()

    def wake(self, now_ms: int) -> None:
        """Schedule maintenance checks, unless they are scheduled already. Call it after records are appended, or settings or replicas change."""
        if self._is_idle:
            self._is_idle = False
            for task in self._tasks:
                task.look_soon(now_ms)
