"""The effect of Kafka's settings in this broker: which have an effect, which values are rejected and why, and which exist only in this broker.

A setting that is in none of this module's lists is accepted and described by DescribeConfigs, and has no effect.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkaproto.broker.config.java_text import java_items


class Refusal(NamedTuple):
    """A rule that rejects some values of a setting, because these values need a feature that this broker lacks, such as TLS.

    reason: why values are rejected. accepted: the values that this broker supports; not used if `includes` has items. includes: for a list setting,
    the items that each value must contain. The empty list is always accepted.
    """

    reason: str
    accepted: tuple[str, ...] = ("",)
    includes: tuple[str, ...] = ()

    def refuses(self, text: str) -> bool:
        if self.includes:
            return text != "" and not {*self.includes} <= {*java_items(text)}
        return text not in self.accepted

    @property
    def accepted_in_words(self) -> str:
        if self.includes:
            return f"a list with {', '.join(self.includes)}"
        return " or ".join(value or "empty" for value in self.accepted)

    def __str__(self) -> str:
        return f"{self.accepted_in_words}: {self.reason}"


_ACTING_BROKER_SETTINGS = """
    node.id broker.id
    listeners advertised.listeners listener.security.protocol.map inter.broker.listener.name controller.listener.names broker.rack
    socket.request.max.bytes socket.listen.backlog.size socket.send.buffer.bytes socket.receive.buffer.bytes connections.max.idle.ms
    max.connections max.connections.per.ip max.connections.per.ip.overrides max.connection.creation.rate

    auto.create.topics.enable delete.topic.enable num.partitions default.replication.factor
    message.max.bytes compression.type compression.gzip.level compression.lz4.level compression.zstd.level
    min.insync.replicas unclean.leader.election.enable unclean.leader.election.interval.ms log.cleanup.policy log.segment.bytes
    log.index.size.max.bytes log.index.interval.bytes
    log.roll.ms log.roll.hours log.roll.jitter.ms log.roll.jitter.hours
    log.retention.ms log.retention.minutes log.retention.hours log.retention.bytes log.retention.check.interval.ms
    log.initial.task.delay.ms
    log.flush.interval.messages log.flush.interval.ms log.flush.scheduler.interval.ms
    log.segment.delete.delay.ms
    log.cleaner.enable log.cleaner.backoff.ms log.cleaner.delete.retention.ms log.cleaner.min.cleanable.ratio
    log.cleaner.io.max.bytes.per.second log.cleaner.min.compaction.lag.ms log.cleaner.max.compaction.lag.ms
    log.message.downconversion.enable log.message.timestamp.type
    log.message.timestamp.before.max.ms log.message.timestamp.after.max.ms log.message.timestamp.difference.max.ms

    fetch.max.bytes max.incremental.fetch.session.cache.slots max.request.partition.size.limit
    replica.selector.class replica.lag.time.max.ms replica.fetch.max.bytes replica.fetch.response.max.bytes replica.fetch.min.bytes
    replica.fetch.wait.max.ms replica.fetch.backoff.ms auto.leader.rebalance.enable leader.imbalance.check.interval.seconds
    metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
    controlled.shutdown.enable broker.session.timeout.ms broker.heartbeat.interval.ms

    telemetry.max.bytes metadata.max.idle.interval.ms

    quota.window.num quota.window.size.seconds replication.quota.window.num replication.quota.window.size.seconds
    controller.quota.window.num controller.quota.window.size.seconds
    metrics.num.samples metrics.sample.window.ms

    offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes offsets.topic.compression.codec
    offsets.commit.timeout.ms offsets.commit.required.acks
    offset.metadata.max.bytes offsets.retention.minutes
    offsets.retention.check.interval.ms group.min.session.timeout.ms group.max.session.timeout.ms group.initial.rebalance.delay.ms
    transaction.state.log.num.partitions transaction.state.log.replication.factor transaction.state.log.min.isr
    transaction.state.log.segment.bytes transaction.max.timeout.ms transactional.id.expiration.ms request.timeout.ms
    transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.partition.verification.enable
    transaction.remove.expired.transaction.cleanup.interval.ms
    add.partitions.to.txn.retry.backoff.ms add.partitions.to.txn.retry.backoff.max.ms
    group.coordinator.append.linger.ms
    group.max.size group.coordinator.rebalance.protocols group.coordinator.new.enable group.consumer.assignors group.consumer.max.size
    group.consumer.migration.policy group.consumer.regex.refresh.interval.ms
    group.consumer.session.timeout.ms group.consumer.min.session.timeout.ms group.consumer.max.session.timeout.ms
    group.consumer.heartbeat.interval.ms group.consumer.min.heartbeat.interval.ms group.consumer.max.heartbeat.interval.ms
    producer.id.expiration.ms producer.id.expiration.check.interval.ms
"""

_ACTING_TOPIC_SETTINGS = """
    cleanup.policy compression.type compression.gzip.level compression.lz4.level compression.zstd.level
    delete.retention.ms file.delete.delay.ms flush.messages flush.ms max.compaction.lag.ms max.message.bytes
    message.downconversion.enable message.timestamp.after.max.ms message.timestamp.before.max.ms
    message.timestamp.difference.max.ms message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms
    min.insync.replicas retention.bytes retention.ms segment.bytes internal.segment.bytes segment.jitter.ms segment.ms
    segment.index.bytes index.interval.bytes
    unclean.leader.election.enable leader.replication.throttled.replicas follower.replication.throttled.replicas
"""

ACTING: dict[str, frozenset[str]] = {
    "broker": frozenset(_ACTING_BROKER_SETTINGS.split()),
    "dynamic": frozenset({"leader.replication.throttled.rate", "follower.replication.throttled.rate"}),
    "topic": frozenset(_ACTING_TOPIC_SETTINGS.split()),
    "group": frozenset({"consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"}),
}
"""Maps a kind of setting ("broker", "dynamic", "topic" or "group") to the settings of this kind that have an effect in this broker."""

_JAVA = "this broker cannot load a Java class"

REFUSED: dict[str, Refusal] = {
    "alter.config.policy.class.name": Refusal(_JAVA),
    "authorizer.class.name": Refusal("access control lists are not served, so every request would be allowed"),
    "client.quota.callback.class": Refusal(_JAVA),
    "config.providers": Refusal("values like ${file:...} are not replaced"),
    "create.topic.policy.class.name": Refusal(_JAVA),
    "principal.builder.class": Refusal(
        _JAVA, ("", "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder")
    ),
    "process.roles": Refusal("a controller alone serves no clients", includes=("broker",)),
    "remote.log.storage.system.enable": Refusal("tiered storage is not served", ("false",)),
    "remote.storage.enable": Refusal("tiered storage is not served", ("false",)),
    "security.inter.broker.protocol": Refusal("TLS and SASL are not served", ("PLAINTEXT",)),
    "unstable.api.versions.enable": Refusal(
        "the API versions that Kafka offers only for tests are not served", ("false",)
    ),
    "unstable.feature.versions.enable": Refusal(
        "the feature levels that Kafka offers only for tests are not supported", ("false",)
    ),
}
"""Maps a setting to the rule (`Refusal`) that rejects some of the setting's values.

The rejected values need a feature that this broker lacks, such as TLS.
"""


FIXED_AT_START = frozenset({"listeners", "advertised.listeners", "listener.security.protocol.map"})
"""Settings that Kafka can change on a running broker and this broker cannot."""

DIFFERENT_RANGES = {
    # Kafka checks this limit in `KafkaConfig.validateValues`. For dynamic settings see the module `requirements`.
    "replica.lag.time.max.ms": "1..",
    # limits of this broker: a topic needs memory for each of its partitions
    "num.partitions": "1..10000",
    "offsets.topic.num.partitions": "1..10000",
    "offsets.topic.compression.codec": "0..4",
    "default.replication.factor": "1..32767",
}
"""Maps a broker setting to the range of its values in this broker, as `lowest..highest`, if Kafka's ConfigDef has another range."""

NARROWER = {
    "num.partitions": "1 or more",
    "offsets.topic.num.partitions": "1 or more",
    "default.replication.factor": "any integer",
}
"""Maps broker settings to the values with which Kafka starts, in words, such as "1 or more".

This broker accepts fewer values of these settings (`DIFFERENT_RANGES`). `kafkaproto settings` prints the text.
"""

THREAD_COUNTS = (
    "background.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "num.io.threads",
    "log.cleaner.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
"""Settings for numbers of threads, in the order in which they are checked. One change may at most double or halve each of them.

From `DynamicThreadPool`, `LogCleaner` and, from 4.0, `DynamicRemoteLogConfig`. `num.network.threads` is checked for each listener instead.
"""

OWN: tuple[tuple[str, str, int | None, int | None], ...] = (
    ("kafkaproto.client.telemetry.enable", "boolean", False, None),
    ("kafkaproto.group.load.ms", "int", 0, 0),
    ("kafkaproto.producer.id.block.ms", "int", 0, 0),
    ("kafkaproto.replica.delay.ms", "int", 0, 0),
    ("kafkaproto.transaction.completion.ms", "int", 1, 0),
    ("kafkaproto.transaction.load.ms", "int", 0, 0),
)
"""Settings that exist only in this broker, as (name, type, default, lowest value). No API describes them."""

REMOVED = ("quota.producer.default", "quota.consumer.default", "quota.producer.override", "quota.consumer.override")
"""Broker settings that Kafka 3.0 removed and that this broker supports in every release (KIP-13)."""

NOTES = {
    **dict.fromkeys(
        ("listeners", "advertised.listeners", "listener.security.protocol.map"),
        "PLAINTEXT only: TLS and SASL are not served",
    ),
    "group.consumer.assignors": "names of Kafka's two classes; from 4.0 on also uniform and range",
    **dict.fromkeys(("log.dir", "log.dirs"), "not empty"),
    "offsets.commit.required.acks": "-1 to offsets.topic.replication.factor; with a value above 1, every commit fails",
    "controller.listener.names": "any names; the broker skips these listeners, because its controller opens none",
    **dict.fromkeys(REMOVED, "Kafka 3.0 removed it; set a client quota instead"),
}
"""Maps settings to a note about their values in this broker. `kafkaproto settings` prints the note."""
