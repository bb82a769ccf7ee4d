"""The options with which Spark reads from and writes to Kafka, validated once on the driver and passed to executors as plain data.

Names, defaults and rules are those of Spark's Kafka source and sink (``KafkaSourceProvider``); names that begin with ``kafka.`` are
client settings. An unknown name is an error, because it would have no effect. This module does not depend on sockets or on Spark's classes.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafkaproto.pipeline.kafka_py.errors import OptionError
from kafkaproto.pipeline.kafka_py.offsets import EARLIEST, LATEST, Offsets, Partition, from_json
from kafkaproto.pipeline.kafka_py.security import JAAS, SECURITY_OPTIONS, STORE_PASSWORDS, Security, read_security
from kafkaproto.records.compression import Compression

T = TypeVar("T")

SERVERS = "kafka.bootstrap.servers"
CHOICES = ("subscribe", "subscribePattern", "assign")
STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")

CLIENT_OPTIONS = (
    SERVERS,
    "kafka.client.id",
    "kafka.request.timeout.ms",
    "kafka.default.api.timeout.ms",
    "kafka.retry.backoff.ms",
    *SECURITY_OPTIONS,
)
SOURCE_OPTIONS = (
    *CHOICES,
    *STARTS,
    *ENDS,
    "startingOffsetsByTimestampStrategy",
    "failOnDataLoss",
    "includeHeaders",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafka.client.rack",
    "kafka.isolation.level",
    "kafka.fetch.max.bytes",
    "kafka.max.partition.fetch.bytes",
    "kafka.fetch.min.bytes",
    "kafka.fetch.max.wait.ms",
    "kafka.check.crcs",
)
SINK_OPTIONS = (
    "topic",
    "includeHeaders",
    "kafka.acks",
    "kafka.enable.idempotence",
    "kafka.compression.type",
    "kafka.batch.size",
    "kafka.max.request.size",
    "kafka.delivery.timeout.ms",
)
WITHOUT_EFFECT = ("groupIdPrefix", "kafka.group.id", "kafka.max.poll.records", "kafka.linger.ms", "checkpointLocation")
"""Options that are accepted and ignored, because kafka_py has no groups, polls or lingering. Spark itself uses `checkpointLocation`."""

NEAR = 0.84
"""The minimum similarity (0 to 1) at which a known option is suggested for an unknown one. A lower value would also suggest unrelated options."""


@dataclass(frozen=True)
class ClientSettings:
    """The settings of a client. Times are in ms.

    servers: "host:port" of each bootstrap server. request_timeout_ms: limit for one request; api_timeout_ms limits one call with all its retries.
    retry_backoff_ms: pause before a retry.
    """

    servers: tuple[str, ...]
    client_id: str = "kafka_py"
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    security: Security = field(default_factory=Security)


@dataclass(frozen=True)
class Bound:
    """The start or the end of a read, as set by an option. name: the name of this option. Exactly one of the other fields is set.

    everywhere: EARLIEST (-2) or LATEST (-1) for all partitions. offsets: maps partitions to offsets. timestamp: a time in ms since the epoch for all
    partitions. timestamps: maps partitions to times in ms since the epoch.
    """

    name: str
    everywhere: int | None = None
    offsets: Offsets | None = None
    timestamp: int | None = None
    timestamps: Offsets | None = None


@dataclass(frozen=True)
class SourceSettings:
    """The settings of a read from Kafka.

    topics: names of the topics to read. pattern: a regular expression for these names. assigned: the partitions to read. Exactly one of these three
    is set. start, end: where the read starts and ends, as the options give it.
    """

    client: ClientSettings
    start: Bound
    end: Bound
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: tuple[Partition, ...] = ()
    no_match_is_latest: bool = False
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    poll_timeout_ms: int = 120_000
    num_retries: int = 3
    retry_interval_ms: int = 1000
    rack: str = ""
    read_committed: bool = False
    fetch_max_bytes: int = 52_428_800
    partition_max_bytes: int = 1_048_576
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    check_crcs: bool = True


@dataclass(frozen=True)
class SinkSettings:
    """The settings of a write to Kafka. topic: the topic of all rows, None if a column names it. acks: -1 for all in-sync replicas, or 1."""

    client: ClientSettings
    topic: str | None = None
    include_headers: bool = False
    acks: int = -1
    idempotent: bool = True
    compression: Compression = Compression.NONE
    batch_bytes: int = 262_144
    max_request_bytes: int = 1_048_576
    delivery_timeout_ms: int = 120_000


def source_settings(options: Mapping[str, str], *, streaming: bool) -> SourceSettings:
    """Return the settings of a read from Kafka, given its options by name. Raises OptionError for a missing, unknown or invalid option.

    streaming: True for a streaming query, which has no end and starts at the latest offsets by default; False for a batch query.
    """
    read = _Reader(options, (*SOURCE_OPTIONS, *CLIENT_OPTIONS))
    chosen = [name for name in CHOICES if read.text(name) is not None]
    if len(chosen) != 1:
        given_options = ", ".join(chosen) or "none"
        topic_options = ", ".join(CHOICES)
        raise OptionError(topic_options, f"exactly one of these options must be given (got {given_options})")
    start = _bound(read, STARTS, LATEST if streaming else EARLIEST)
    end = _bound(read, ENDS, LATEST)
    if streaming and (end_options := [name for name in ENDS if read.text(name) is not None]):
        raise OptionError(
            end_options[0], "cannot be used with a streaming query, which has no end; leave the option out"
        )
    if not streaming:
        _check_batch(start, LATEST, "a batch query cannot start at latest")
        _check_batch(end, EARLIEST, "a batch query cannot end at earliest")
    return SourceSettings(
        client=_client(read),
        start=start,
        end=end,
        topics=_topics(read),
        pattern=_pattern(read),
        assigned=_assigned(read),
        no_match_is_latest=read.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), "error") == "latest",
        fail_on_data_loss=read.boolean("failOnDataLoss", True),
        include_headers=read.boolean("includeHeaders", False),
        min_partitions=read.positive("minPartitions"),
        max_records_per_partition=read.positive("maxRecordsPerPartition"),
        max_offsets_per_trigger=read.positive("maxOffsetsPerTrigger"),
        poll_timeout_ms=read.number("kafkaConsumer.pollTimeoutMs", 120_000, 1),
        num_retries=read.number("fetchOffset.numRetries", 3, 0),
        retry_interval_ms=read.number("fetchOffset.retryIntervalMs", 1000, 0),
        rack=read.text("kafka.client.rack") or "",
        read_committed=read.choice("kafka.isolation.level", ("read_uncommitted", "read_committed"), "read_uncommitted")
        == "read_committed",
        fetch_max_bytes=read.number("kafka.fetch.max.bytes", 52_428_800, 0),
        partition_max_bytes=read.number("kafka.max.partition.fetch.bytes", 1_048_576, 0),
        fetch_min_bytes=read.number("kafka.fetch.min.bytes", 1, 0),
        fetch_max_wait_ms=read.number("kafka.fetch.max.wait.ms", 500, 0),
        check_crcs=read.boolean("kafka.check.crcs", True),
    )


def sink_settings(options: Mapping[str, str]) -> SinkSettings:
    """Return the settings of a write to Kafka from its options, by name. Raises OptionError that names the missing, unknown or invalid option."""
    read = _Reader(options, (*SINK_OPTIONS, *CLIENT_OPTIONS))
    acks = read.choice("kafka.acks", ("all", "-1", "1"), "all")
    idempotent = read.boolean("kafka.enable.idempotence", acks != "1")
    if idempotent and acks == "1":
        raise OptionError(
            "kafka.enable.idempotence",
            "must be false with kafka.acks=1, because an idempotent producer needs kafka.acks=all",
        )
    kinds = {kind.name.lower(): kind for kind in Compression}
    topic = read.text("topic")
    if topic is not None and not topic.strip():
        raise OptionError("topic", "must not be empty; name a topic, or leave the option out and use a column topic")
    return SinkSettings(
        client=_client(read),
        topic=None if topic is None else topic.strip(),
        include_headers=read.boolean("includeHeaders", False),
        acks=1 if acks == "1" else -1,
        idempotent=idempotent,
        compression=kinds[read.choice("kafka.compression.type", tuple(kinds), "none")],
        batch_bytes=read.number("kafka.batch.size", 262_144, 0),
        max_request_bytes=read.number("kafka.max.request.size", 1_048_576, 1),
        delivery_timeout_ms=read.number("kafka.delivery.timeout.ms", 120_000, 1),
    )


def wants_headers(options: Mapping[str, str]) -> bool:
    """Return whether the option for headers is set, so that rows have headers. Other options are not validated."""
    return _Reader(options, None).boolean("includeHeaders", False)


class _Reader:
    """A lookup of options that ignores case, because Spark passes option names in lower case."""

    def __init__(self, options: Mapping[str, str], known_options: tuple[str, ...] | None) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        if known_options is None:
            return
        spelling = {name.lower(): name for name in (*known_options, *WITHOUT_EFFECT, *STORE_PASSWORDS)}
        for name in self._options:
            if name not in spelling:
                raise OptionError(name, _unknown(name, spelling, known_options))

    def text(self, name: str) -> str | None:
        return self._options.get(name.lower())

    def _read(self, name: str, default: T, make: Callable[[str], T], expected: str) -> T:
        text = self.text(name)
        if text is None:
            return default
        try:
            return make(text.strip())
        except ValueError:
            raise OptionError(name, f"{text!r} is not {expected}") from None

    def boolean(self, name: str, default: bool) -> bool:
        return self._read(name, default, lambda text: _one_of(text, ("true", "false")) == "true", "true or false")

    def choice(self, name: str, values: tuple[str, ...], default: str) -> str:
        return self._read(name, default, lambda text: _one_of(text, values), f"one of {', '.join(values)}")

    def number(self, name: str, default: int, lowest: int) -> int:
        return self._read(name, default, lambda text: _at_least(text, lowest), f"a whole number of at least {lowest}")

    def positive(self, name: str) -> int | None:
        return self._read(name, None, lambda text: _at_least(text, 1), "a whole number above 0")

    def parsed(self, name: str, make: Callable[[Any], T], example: str) -> T | None:
        """Return the value of an option, parsed as JSON and converted by `make`; None if the option is not given.

        example: a valid value, for the error message. Raises OptionError if the value is not JSON or `make` rejects it.
        """
        text = self.text(name)
        if text is None:
            return None
        try:
            return make(json.loads(text))
        except (ValueError, TypeError, AttributeError):
            raise OptionError(name, f"{text!r} is not of the form {example}") from None


LOGIN_EXAMPLE = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="secret";'
OF_LIBRDKAFKA = ("kafka.sasl.username", "kafka.sasl.password")
"""The settings of librdkafka for user and password. kafka_py rejects them and requires `kafka.sasl.jaas.config`, as Kafka's own clients do."""


def _unknown(name: str, spelling: Mapping[str, str], known_options: tuple[str, ...]) -> str:
    """Return the message for an unknown option.

    name: the unknown option, in lower case. spelling: maps each accepted option in lower case to its usual spelling. known_options: the options that
    the message lists if no accepted option has a similar name.
    """
    if name in {option.lower() for option in (*SOURCE_OPTIONS, *SINK_OPTIONS)}:
        return f"is an option of {'writes' if CHOICES[0] in known_options else 'reads'} only"
    if name in OF_LIBRDKAFKA:
        return f"is not known; set {JAAS}, as for Kafka's Java clients: {LOGIN_EXAMPLE}"
    nearest = difflib.get_close_matches(name, spelling, n=1, cutoff=NEAR)
    if nearest:
        return f'is not known; did you mean "{spelling[nearest[0]]}"?'
    return f"is not known; known are {', '.join(sorted(known_options))}"


def _one_of(text: str, values: tuple[str, ...]) -> str:
    if text.lower() not in values:
        raise ValueError(text)
    return text.lower()


def _at_least(text: str, lowest: int) -> int:
    number = int(text)
    if number < lowest:
        raise ValueError(text)
    return number


def _client(read: _Reader) -> ClientSettings:
    servers = tuple(server.strip() for server in (read.text(SERVERS) or "").split(",") if server.strip())
    if not servers:
        raise OptionError(SERVERS, "must be given, for example localhost:9092")
    for server in servers:
        host, _, port = server.rpartition(":")
        if not (host and port.isdecimal()):
            raise OptionError(SERVERS, f"must be host:port, for example localhost:9092 (got {server!r})")
    return ClientSettings(
        servers=servers,
        client_id=read.text("kafka.client.id") or "kafka_py",
        request_timeout_ms=read.number("kafka.request.timeout.ms", 30_000, 1),
        api_timeout_ms=read.number("kafka.default.api.timeout.ms", 60_000, 1),
        retry_backoff_ms=read.number("kafka.retry.backoff.ms", 100, 0),
        security=read_security(read.text),
    )


def _topics(read: _Reader) -> tuple[str, ...]:
    text = read.text("subscribe")
    if text is None:
        return ()
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise OptionError("subscribe", "must name at least one topic")
    return topics


def _pattern(read: _Reader) -> str:
    text = read.text("subscribePattern")
    if text is None:
        return ""
    if not text.strip():
        raise OptionError("subscribePattern", "must not be empty")
    try:
        re.compile(text)
    except re.error as error:
        raise OptionError("subscribePattern", f"{text!r} is not a valid regular expression: {error}") from None
    return text


def _assigned(read: _Reader) -> tuple[Partition, ...]:
    partitions = read.parsed("assign", _partitions_of, '{"topic": [0, 1]}')
    if partitions is None:
        return ()
    if not partitions:
        raise OptionError("assign", "must name at least one partition")
    return partitions


def _partitions_of(parsed: Any) -> tuple[Partition, ...]:
    partitions = [(topic, index) for topic, indexes in parsed.items() for index in indexes]
    if not all(type(index) is int and index >= 0 for _, index in partitions):
        raise ValueError
    return tuple(sorted(set(partitions)))


def _bound(read: _Reader, names: tuple[str, ...], default: int) -> Bound:
    """Return the start or the end of a read. As in Spark, the first option in `names` that the user gives determines it.

    names: the names of three options, in this order: one time for all partitions, a time for each partition, offsets. default: EARLIEST (-2) or
    LATEST (-1), used if none of the three is given.
    """
    timestamp, by_timestamp, offsets = names
    if read.text(timestamp) is not None:
        return Bound(timestamp, timestamp=read.number(timestamp, 0, 0))
    if read.text(by_timestamp) is not None:
        return Bound(by_timestamp, timestamps=_offsets(read, by_timestamp, 0))
    words = {"earliest": EARLIEST, "latest": LATEST}
    word = (read.text(offsets) or "").strip().lower()
    if not word or word in words:
        return Bound(offsets, everywhere=words.get(word, default))
    return Bound(offsets, offsets=_offsets(read, offsets, EARLIEST))


def _offsets(read: _Reader, name: str, lowest: int) -> Offsets | None:
    example = '{"topic": {"0": 23, "1": -2}}' if lowest else '{"topic": {"0": 1700000000000}}'
    offsets = read.parsed(name, from_json, example)
    if offsets and min(offsets.values()) < lowest:
        raise OptionError(name, f"every value must be at least {lowest} (got {min(offsets.values())})")
    return offsets


def _check_batch(bound: Bound, refused: int, reason: str) -> None:
    if bound.everywhere == refused or (bound.offsets and refused in bound.offsets.values()):
        raise OptionError(bound.name, reason)
