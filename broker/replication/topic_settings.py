"""The settings of a topic in the form that its replicas use, such as limits of batches, segments, retention and compaction.

This module does not depend on wire messages, followers or in-sync replicas.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkaproto.broker.config.cluster_config import BrokerConfig
from kafkaproto.broker.config.release import is_release_4
from kafkaproto.broker.log.compaction import CleaningLimits
from kafkaproto.broker.log.retention import RetentionLimits
from kafkaproto.broker.log.rolling import IndexLimits
from kafkaproto.broker.log.validation import TopicLimits
from kafkaproto.broker.metadata.image import Topic
from kafkaproto.broker.replication.partition import Partition

LONG_MAX = 2**63 - 1
CODECS_WITH_LEVELS = ("gzip", "lz4", "zstd")
"""The values of `compression.type` that have a setting for the compression level (KIP-390)."""


class TopicSettings(NamedTuple):
    """The values of a topic's settings on one broker.

    - deletes: whether DeleteRecords is allowed: `cleanup.policy` contains delete or, from 4.0 on, does not contain compact.
    - segment_ms, jitter_ms: the age at which a segment is closed, and the maximum of the random jitter that lowers this age.
    - index_limits: the limits of the indexes of a segment, which may close a segment early (CF-28).
    - flush_messages: the number of records after which the files of a data directory are fsynced.
    - flush_ms: the time since the last fsync of these files after which log maintenance fsyncs them again.
    - cleaning: the limits of compaction, None if the topic is not compacted.
    - delete_delay_ms: the time after which the file of a deleted segment in a data directory is deleted.
    - down_converts: whether fetched batches are converted for clients that cannot read their magic (`message.downconversion.enable`).
    """

    limits: TopicLimits
    min_isr: int
    deletes: bool
    segment_ms: int
    jitter_ms: int
    index_limits: IndexLimits
    flush_messages: int
    flush_ms: int
    retention: RetentionLimits
    cleaning: CleaningLimits | None
    delete_delay_ms: int
    down_converts: bool

    def apply_to(self, partition: Partition) -> bool:
        """Apply these settings to a replica. Returns whether log maintenance, such as retention, must check the replica's log again.

        A check is needed if the limits of retention, the limits of compaction or `flush.ms` have changed, and the log is not empty.
        """
        flush_state = partition.log.store.flush_state
        settings_before = partition.retention, partition.cleaning, flush_state.limit_ms
        partition.limits = self.limits
        partition.min_isr = self.min_isr
        partition.deletes = self.deletes
        partition.retention = self.retention
        partition.cleaning = self.cleaning
        partition.down_converts = self.down_converts
        store = partition.log.store
        store.segment_bytes = self.limits.segment_bytes
        flush_state.limit_records, flush_state.limit_ms = self.flush_messages, self.flush_ms
        conditions = store.roll_conditions
        conditions.segment_ms, conditions.jitter_ms = self.segment_ms, self.jitter_ms
        conditions.index_limits = self.index_limits
        if store.folder is not None:
            store.folder.delete_delay_ms = self.delete_delay_ms
        return bool(len(partition.log.runs)) and settings_before != (self.retention, self.cleaning, self.flush_ms)


def settings_of(topic: Topic, config: BrokerConfig) -> TopicSettings:
    """Return the settings of a topic: those that the topic sets itself, and the broker's values for all others."""

    def value(name: str) -> Any:
        return config.topic(topic.configs, name)

    policy = str(value("cleanup.policy"))
    compact, deletes = "compact" in policy, "delete" in policy
    codec = str(value("compression.type"))
    difference_max_ms = value("message.timestamp.difference.max.ms")
    full_bytes, index_limits = segment_limits(topic, config)
    limits = TopicLimits(
        max_message_bytes=value("max.message.bytes"),
        segment_bytes=full_bytes,
        compact=compact,
        log_append_time=value("message.timestamp.type") == "LogAppendTime",
        timestamp_before_max_ms=_given_or(value("message.timestamp.before.max.ms"), difference_max_ms),
        timestamp_after_max_ms=_given_or(value("message.timestamp.after.max.ms"), difference_max_ms),
        compression_type=codec,
        compression_level=value(f"compression.{codec}.level") if codec in CODECS_WITH_LEVELS else None,
    )
    cleaning = CleaningLimits(
        value("min.compaction.lag.ms"),
        value("max.compaction.lag.ms"),
        value("min.cleanable.dirty.ratio"),
        value("delete.retention.ms"),
    )
    segment_ms = value("segment.ms")
    return TopicSettings(
        limits,
        min_isr=value("min.insync.replicas"),
        deletes=deletes or (not compact and is_release_4(config.cluster.release)),
        # Only closed segments are compacted, so a segment must close in time (`LogConfig.maxSegmentMs`).
        segment_ms=min(segment_ms, cleaning.max_lag_ms) if compact else segment_ms,
        jitter_ms=value("segment.jitter.ms"),
        index_limits=index_limits,
        flush_messages=value("flush.messages"),
        flush_ms=value("flush.ms"),
        retention=RetentionLimits(value("retention.ms"), value("retention.bytes")) if deletes else RetentionLimits(),
        cleaning=cleaning if compact else None,
        delete_delay_ms=value("file.delete.delay.ms"),
        down_converts=value("message.downconversion.enable"),
    )


def segment_bytes(topic: Topic, config: BrokerConfig) -> int:
    """Return the size in bytes at which a segment of a topic is full: `internal.segment.bytes` if it is set, otherwise `segment.bytes`.

    `segment.bytes` must be at least 1 MiB (KIP-1030), so Kafka 4.2 has the internal setting for tests with smaller segments. Source:
    `LogConfig.segmentSize`.
    """
    internal: int | None = config.topic(topic.configs, "internal.segment.bytes")
    size_bytes: int = config.topic(topic.configs, "segment.bytes")
    return size_bytes if internal is None else internal


def segment_limits(topic: Topic, config: BrokerConfig) -> tuple[int, IndexLimits]:
    """Return the size in bytes at which a segment of a topic is full, and the limits of the segment's indexes."""
    index_bytes, interval_bytes = (
        config.topic(topic.configs, name) for name in ("segment.index.bytes", "index.interval.bytes")
    )
    return segment_bytes(topic, config), IndexLimits(index_bytes, interval_bytes)


def _given_or(max_ms: int, difference_max_ms: int) -> int:
    """Return the maximum difference in ms between a record's timestamp and the broker's time, in one direction.

    max_ms: the value of message.timestamp.before.max.ms or message.timestamp.after.max.ms. difference_max_ms: the value of the deprecated setting
    message.timestamp.difference.max.ms for both directions, used if `max_ms` has its default value.
    """
    return difference_max_ms if max_ms == LONG_MAX else max_ms
