"""The table of settings: Kafka's names, types, ranges and defaults (3.9), and what each does here. Data, no behaviour.

A setting marked `acts=False` is accepted and described like any other but changes nothing yet; setting it says so.
Facts from `KafkaConfig`, `LogConfig` and `TopicConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. kind: boolean, string, int, short, long, double, list, password or class, as DescribeConfigs names them.

    topic_name: the topic setting of which this broker setting is the default. dynamic: may be changed while the broker runs.
    per_listener: `listener.name.<listener>.<name>` holds for one listener.
    coarser: settings that hold where this one is not given, the first that is: (name, how many of our unit its unit has).
    only_dynamic: given at start it is accepted and changes nothing (R-12). items: what each item of a list has to match, under `kip`
    and under `kafka` (D10), unless the whole is `*`; item_form: the same in words.
    """

    name: str
    kind: str
    default: object
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    acts: bool = True
    dynamic: bool = False
    topic_name: str | None = None
    coarser: tuple[tuple[str, int], ...] = ()
    per_listener: bool = False
    only_dynamic: bool = False
    items: tuple[str, str] | None = None
    item_form: str = ""

    @property
    def allowed(self) -> str:
        """The allowed values in words, for error messages."""
        if self.choices:
            kind = "any of" if self.kind == "list" else "one of"
            return f"{kind} {', '.join(self.choices)}"
        if self.item_form:
            return self.item_form
        if self.kind == "boolean":
            return "true or false"
        if self.low is not None or self.high is not None:
            low = "" if self.low is None else f" from {self.low}"
            high = "" if self.high is None else f" to {self.high}"
            return f"{self.kind}{low}{high}"
        return f"a value of type {self.kind}"

    @property
    def example(self) -> str:
        if self.items is not None:
            return f"{self.name}=0:1,0:2"
        if self.default is None or self.default == "":
            return f"{self.name}={self.choices[0] if self.choices else 'a'}"
        value = str(self.default).lower() if self.kind == "boolean" else self.default
        return f"{self.name}={value}"


_COMPRESSIONS = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
_CLEANUP = ("delete", "compact")
_TIMESTAMPS = ("CreateTime", "LogAppendTime")


def _int(name: str, default: int, low: float | None = None, high: float | None = INT_MAX, **more: object) -> Setting:
    return Setting(name, "int", default, low, high, **more)  # type: ignore[arg-type]


def _long(name: str, default: int, low: float | None = None, high: float | None = LONG_MAX, **more: object) -> Setting:
    return Setting(name, "long", default, low, high, **more)  # type: ignore[arg-type]


def _bool(name: str, default: bool, **more: object) -> Setting:
    return Setting(name, "boolean", default, **more)  # type: ignore[arg-type]


def _string(name: str, default: str | None, **more: object) -> Setting:
    return Setting(name, "string", default, **more)  # type: ignore[arg-type]


_BROKER = (
    # Who this broker is and where it listens
    _int("broker.id", -1, acts=False),
    _int("node.id", -1, acts=False),
    _string("broker.rack", None),
    _string("listeners", "PLAINTEXT://:9092"),
    _string("advertised.listeners", None),
    _string("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT"),
    _string("inter.broker.listener.name", None),
    _string("process.roles", "broker", acts=False),
    # Connections
    _int("socket.request.max.bytes", 104857600, 1),
    _long("connections.max.idle.ms", 600000),
    _int("max.connections.per.ip", INT_MAX, 0, dynamic=True),
    _string("max.connections.per.ip.overrides", "", dynamic=True),
    _int("max.connections", INT_MAX, 0, dynamic=True, per_listener=True),
    _int("max.connection.creation.rate", INT_MAX, 0, dynamic=True, per_listener=True),
    _int("queued.max.requests", 500, 1, acts=False),
    _int("num.network.threads", 3, 1, acts=False, dynamic=True),
    _int("num.io.threads", 8, 1, acts=False, dynamic=True),
    _int("socket.send.buffer.bytes", 102400, acts=False),
    _int("socket.receive.buffer.bytes", 102400, acts=False),
    _int("socket.listen.backlog.size", 50, 1, acts=False),
    _int("connection.failed.authentication.delay.ms", 100, 0, acts=False),
    # Topics
    _bool("auto.create.topics.enable", True),
    _bool("delete.topic.enable", True),
    _int("num.partitions", 1, 1, 10_000),
    Setting("default.replication.factor", "int", 1, 1, 32767),
    _int("message.max.bytes", 1048588, 0, dynamic=True, topic_name="max.message.bytes"),
    _string("compression.type", "producer", choices=_COMPRESSIONS, dynamic=True, topic_name="compression.type"),
    _int("min.insync.replicas", 1, 1, dynamic=True, topic_name="min.insync.replicas"),
    _bool("unclean.leader.election.enable", False, dynamic=True, topic_name="unclean.leader.election.enable"),
    Setting("log.cleanup.policy", "list", "delete", choices=_CLEANUP, dynamic=True, topic_name="cleanup.policy"),
    _int("log.segment.bytes", 1073741824, 14, dynamic=True, topic_name="segment.bytes"),
    _long(
        "log.roll.ms",
        604800000,
        1,
        dynamic=True,
        topic_name="segment.ms",
        coarser=(("log.roll.hours", 60 * MINUTE_MS),),
    ),
    _int("log.roll.hours", 168, 1),
    _long(
        "log.roll.jitter.ms",
        0,
        0,
        dynamic=True,
        topic_name="segment.jitter.ms",
        coarser=(("log.roll.jitter.hours", 60 * MINUTE_MS),),
    ),
    _int("log.roll.jitter.hours", 0, 0),
    _long(
        "log.retention.ms",
        604800000,
        -1,
        dynamic=True,
        topic_name="retention.ms",
        coarser=(("log.retention.minutes", MINUTE_MS), ("log.retention.hours", 60 * MINUTE_MS)),
    ),
    _int("log.retention.hours", 168),
    _int("log.retention.minutes", 10080),
    _long("log.retention.bytes", -1, dynamic=True, topic_name="retention.bytes"),
    _long("log.retention.check.interval.ms", 300000, 1),
    _long("log.segment.delete.delay.ms", 60000, 0, acts=False, dynamic=True, topic_name="file.delete.delay.ms"),
    _int("log.index.interval.bytes", 4096, 0, acts=False, dynamic=True, topic_name="index.interval.bytes"),
    _long("log.flush.interval.messages", LONG_MAX, 1, dynamic=True, topic_name="flush.messages"),
    _long("log.flush.interval.ms", LONG_MAX, 0, acts=False, dynamic=True, topic_name="flush.ms"),
    _bool("log.cleaner.enable", True),
    _long("log.cleaner.backoff.ms", 15000, 0, dynamic=True),
    _long("log.cleaner.delete.retention.ms", 86400000, 0, dynamic=True, topic_name="delete.retention.ms"),
    Setting(
        "log.cleaner.min.cleanable.ratio",
        "double",
        0.5,
        0,
        1,
        dynamic=True,
        topic_name="min.cleanable.dirty.ratio",
    ),
    _long("log.cleaner.min.compaction.lag.ms", 0, 0, dynamic=True, topic_name="min.compaction.lag.ms"),
    _long("log.cleaner.max.compaction.lag.ms", LONG_MAX, 1, dynamic=True, topic_name="max.compaction.lag.ms"),
    _bool("log.preallocate", False, acts=False, dynamic=True, topic_name="preallocate"),
    _bool("log.message.downconversion.enable", True, dynamic=True, topic_name="message.downconversion.enable"),
    _string(
        "log.message.timestamp.type",
        "CreateTime",
        choices=_TIMESTAMPS,
        dynamic=True,
        topic_name="message.timestamp.type",
    ),
    _long(
        "log.message.timestamp.before.max.ms", LONG_MAX, 0, dynamic=True, topic_name="message.timestamp.before.max.ms"
    ),
    _long("log.message.timestamp.after.max.ms", LONG_MAX, 0, dynamic=True, topic_name="message.timestamp.after.max.ms"),
    _string("log.dir", "", acts=False),
    _string("log.dirs", "", acts=False),
    # Fetch
    _int("fetch.max.bytes", 57671680, 1024),
    _int("max.incremental.fetch.session.cache.slots", 1000, 0),
    _int("fetch.purgatory.purge.interval.requests", 1000, acts=False),
    _int("producer.purgatory.purge.interval.requests", 1000, acts=False),
    # Replication
    _string("replica.selector.class", None),
    _long("replica.lag.time.max.ms", 30000, 1),
    _int("replica.fetch.max.bytes", 1048576, 0),
    _int("replica.fetch.response.max.bytes", 10485760, 0),
    _int("replica.fetch.min.bytes", 1),
    _int("replica.fetch.wait.max.ms", 500),
    _int("replica.fetch.backoff.ms", 1000, 0),
    _int("num.replica.fetchers", 1, 1, acts=False, dynamic=True),
    _bool("auto.leader.rebalance.enable", True),
    _long("leader.imbalance.check.interval.seconds", 300, 1),
    # Quotas
    _int("quota.window.num", 11, 1),
    _int("quota.window.size.seconds", 1, 1),
    _int("replication.quota.window.num", 11, 1),
    _int("replication.quota.window.size.seconds", 1, 1),
    _int("alter.log.dirs.replication.quota.window.num", 11, 1, acts=False),
    _int("alter.log.dirs.replication.quota.window.size.seconds", 1, 1, acts=False),
    _int("controller.quota.window.num", 11, 1),
    _int("controller.quota.window.size.seconds", 1, 1),
    _long("leader.replication.throttled.rate", LONG_MAX, 0, dynamic=True, only_dynamic=True),
    _long("follower.replication.throttled.rate", LONG_MAX, 0, dynamic=True, only_dynamic=True),
    _long("replica.alter.log.dirs.io.max.bytes.per.second", LONG_MAX, 0, acts=False, dynamic=True, only_dynamic=True),
    _string("quota.producer.default", None),
    _string("quota.consumer.default", None),
    _string("quota.producer.override", None),
    _string("quota.consumer.override", None),
    # Groups
    _int("offsets.topic.num.partitions", 50, 1, 10_000),
    Setting("offsets.topic.replication.factor", "short", 3, 1, 32767),
    _int("offset.metadata.max.bytes", 4096),
    _int("offsets.retention.minutes", 10080, 1),
    _long("offsets.retention.check.interval.ms", 600000, 1),
    _int("group.min.session.timeout.ms", 6000),
    _int("group.max.session.timeout.ms", 1800000),
    _int("group.initial.rebalance.delay.ms", 3000),
    _int("group.max.size", INT_MAX, 1),
    # Transactions: the coordinator comes with a later issue
    _int("transaction.state.log.num.partitions", 50, 1, acts=False),
    Setting("transaction.state.log.replication.factor", "short", 3, 1, 32767, acts=False),
    _int("transaction.state.log.min.isr", 2, 1, acts=False),
    _int("transaction.max.timeout.ms", 900000, 1, acts=False),
    _int("producer.id.expiration.ms", 86400000, 1, dynamic=True),
    _int("producer.id.expiration.check.interval.ms", 600000, 1),
    # What this broker has and Kafka has not
    _int("kafkaproto.replica.delay.ms", 0, 0),
)


def _throttled_replicas(name: str) -> Setting:
    """R-1. KIP-73 writes `partition-broker`, its implementation `partition:broker` (D10); an item may be empty."""
    return Setting(
        name,
        "list",
        "",
        dynamic=True,
        items=("([0-9]+[:-][0-9]+)?", "([0-9]+:[0-9]+)?"),
        item_form="* or a list of partition:broker",
    )


_TOPIC_ONLY = (
    _throttled_replicas("leader.replication.throttled.replicas"),
    _throttled_replicas("follower.replication.throttled.replicas"),
    _bool("remote.storage.enable", False, acts=False, dynamic=True),
    _int("segment.index.bytes", 10485760, 4, acts=False, dynamic=True),
)


def _topic_setting(broker: Setting) -> Setting:
    assert broker.topic_name is not None
    return Setting(
        broker.topic_name,
        broker.kind,
        broker.default,
        broker.low,
        broker.high,
        broker.choices,
        broker.acts,
        dynamic=True,
    )


BROKER_SETTINGS: dict[str, Setting] = {s.name: s for s in _BROKER}
BROKER_NAME_OF_TOPIC_SETTING: dict[str, str] = {s.topic_name: s.name for s in _BROKER if s.topic_name is not None}
TOPIC_SETTINGS: dict[str, Setting] = {
    s.name: s for s in (*(_topic_setting(b) for b in _BROKER if b.topic_name is not None), *_TOPIC_ONLY)
}
