"""A small blocking client of a cluster: leaders, offsets, and a connection to each broker.

The client retries requests after temporary errors (a leader that moves, a broker that restarts) until ``api_timeout_ms`` is over. This module does
not depend on offset ranges, records or Spark.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from ssl import SSLCertVerificationError
from typing import Any, TypeVar

from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkaproto.pipeline.kafka_py.connection import Connection
from kafkaproto.pipeline.kafka_py.errors import KafkaError, OptionError, error_name
from kafkaproto.pipeline.kafka_py.offsets import Offsets, Partition
from kafkaproto.pipeline.kafka_py.options import SERVERS, ClientSettings
from kafkaproto.pipeline.kafka_py.security import PROTOCOL, WrongProtocol

T = TypeVar("T")

PASSING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)
"""Error codes of temporary conditions: a request that fails with one of them is sent again, after new metadata if necessary."""
NO_OFFSET = -1


class Passing(Exception):
    """Raised if an attempt of an operation failed for a temporary reason, so that the client tries again. The text names the reason."""


class Missing(Passing):
    """Raised if the brokers do not know the topic or partition, because it was deleted or does not exist yet."""


class Client:
    """A client for one thread. It cannot be pickled: each executor creates its own. `close` closes its connections.

    fail_fast: True to raise OptionError at once, without retries, if the client has never been connected and no bootstrap server can be reached. The
    driver passes True, because the options may be wrong. Executors pass False and retry, because the driver has reached the brokers with the same
    options.
    """

    def __init__(self, settings: ClientSettings, fail_fast: bool = False) -> None:
        self.settings = settings
        self._fail_fast = fail_fast
        self._brokers: dict[int, tuple[str, int]] = {}
        self._leaders: dict[Partition, int] = {}
        self._open: dict[tuple[str, int], Connection] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    # ---- retries -------------------------------------------------------------------------------------------------------------

    def until_done(self, doing: str, attempt: Callable[[], T], timeout_ms: int | None = None) -> T:
        """Call `attempt`, and retry it while it raises Passing (a temporary failure) or OSError. Returns its result.

        doing: beginning of the error text, such as "cannot list the topics". timeout_ms: how long to retry; None for `api_timeout_ms`. Raises
        TimeoutError when the time is over. SSLCertVerificationError is not retried.
        """
        deadline = time.monotonic() + (self.settings.api_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        while True:
            try:
                return attempt()
            except SSLCertVerificationError:  # an OSError that does not pass by itself
                raise
            except (Passing, OSError) as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{doing}: {error}") from error
                if isinstance(error, OSError):
                    self.close()
            self.back_off()

    def back_off(self) -> None:
        """Pause before a retry (`retry_backoff_ms`), and discard the cached partition leaders, so that the retry looks them up again."""
        self._leaders.clear()
        time.sleep(self.settings.retry_backoff_ms / 1000)

    # ---- brokers and leaders -------------------------------------------------------------------------------------------------

    def any_connection(self) -> Connection:
        """Return a connection to a known broker or to a bootstrap server.

        Raises SSLCertVerificationError if the certificate of a server is not accepted. If no server can be reached, raises OptionError if `fail_fast`
        is true and no attempt timed out, otherwise ConnectionError.
        """
        if self._open:
            return next(iter(self._open.values()))
        errors: list[OSError] = []
        timed_out = False
        bootstrap = [
            (host.strip("[]"), int(port)) for host, _, port in (s.rpartition(":") for s in self.settings.servers)
        ]
        for address in dict.fromkeys((*bootstrap, *self._brokers.values())):
            try:
                return self._connect(address)
            except SSLCertVerificationError:
                raise
            except OSError as error:
                errors.append(
                    error if error.strerror is None else ConnectionError(f"{address[0]}:{address[1]}: {error.strerror}")
                )
                timed_out = timed_out or isinstance(error, TimeoutError)
        if self._fail_fast and not timed_out:
            raise self._refused(errors)
        raise ConnectionError(
            f"none of {', '.join(self.settings.servers)} can be reached; check that these brokers run and that "
            f"the option kafka.bootstrap.servers is correct; the last error: {errors[-1]}"
        )

    def _refused(self, errors: list[OSError]) -> OptionError:
        """Return the error to raise if no bootstrap server can be reached: it names the option that is probably wrong.

        errors: why each of the servers cannot be reached.
        """
        text = "; ".join(map(str, errors))
        if not all(isinstance(error, WrongProtocol) for error in errors):
            return OptionError(SERVERS, f"no broker can be reached: {text}")
        other = replace(self.settings.security, tls=not self.settings.security.tls).protocol
        return OptionError(PROTOCOL, f"is {self.settings.security.protocol}, but {text}; try {other}")

    def connection(self, broker_id: int) -> Connection:
        """Return a connection to a broker. Raises Passing if the metadata has no address of the broker, and OSError if it cannot be reached."""
        address = self._brokers.get(broker_id)
        if address is None:
            raise Passing(f"broker {broker_id} is not in the cluster's metadata; check that it is running")
        return self._open.get(address) or self._connect(address)

    def _connect(self, address: tuple[str, int]) -> Connection:
        connection = Connection(*address, self.settings)
        self._fail_fast = False
        self._open[address] = connection
        return connection

    def forget(self, connection: Connection) -> None:
        """Close a connection that has failed, or whose pending responses are no longer needed."""
        connection.close()
        with suppress(StopIteration):
            self._open.pop(
                next(address for address, open_connection in self._open.items() if open_connection is connection)
            )

    def leader(self, partition: Partition, create: bool = False) -> int:
        """Return the id of the broker that leads a partition. Raises Passing or OSError if a retry may help, otherwise KafkaError.

        create: whether to create a missing topic if the brokers allow it.
        """
        if partition not in self._leaders:
            response = self._ask_metadata([partition[0]], create)
            if any(topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for topic in response.topics):
                raise Missing(f"there is no topic {partition[0]}; create it, or correct the name")
        if partition not in self._leaders:
            raise Passing(
                f"partition {partition[0]}-{partition[1]} has no leader; check that a broker with an in-sync replica is running"
            )
        return self._leaders[partition]

    def _ask_metadata(self, topics: list[str] | None, create: bool = False) -> MetadataResponse:
        requested = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=requested, allow_auto_topic_creation=create)
        response: MetadataResponse = self.any_connection().ask(ApiKey.METADATA, request)
        self._brokers = {b.node_id: (b.host, b.port) for b in response.brokers}
        for topic in response.topics:
            for described in topic.partitions:
                partition = (topic.name or "", described.partition_index)
                self._leaders.pop(partition, None)
                if described.leader_id in self._brokers:
                    self._leaders[partition] = described.leader_id
        return response

    # ---- topics --------------------------------------------------------------------------------------------------------------

    def partitions_of(self, topics: Iterable[str], create: bool = False) -> list[Partition]:
        """Return all partitions of the topics. create: whether to create missing topics if the brokers allow it.

        The lookup is retried after LEADER_NOT_AVAILABLE (5) and, if `create` is true, after every temporary error (`PASSING`), which then includes
        UNKNOWN_TOPIC_OR_PARTITION (3). Raises KafkaError for any other error, and TimeoutError if temporary failures last longer than
        `api_timeout_ms`.
        """
        names = list(topics)
        if not names:
            return []

        def attempt() -> list[Partition]:
            response = self._ask_metadata(names, create)
            for topic in response.topics:
                passes = topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE or (create and topic.error_code in PASSING)
                if passes:
                    raise Passing(f"topic {topic.name}: {error_name(topic.error_code)}")
                if topic.error_code:
                    raise KafkaError(
                        topic.error_code,
                        f"the broker rejected the lookup of topic {topic.name} (does it exist, and may the user describe it?)",
                    )
            return _partitions(response)

        return self.until_done(f"cannot look up the topics {', '.join(names)}", attempt)

    def partitions_like(self, pattern: str) -> list[Partition]:
        """Return all partitions of the topics whose whole name matches the regular expression `pattern`. Internal topics are left out."""
        response = self.until_done("cannot list the topics", lambda: self._ask_metadata(None))
        response.topics = [
            t for t in response.topics if not t.is_internal and not t.error_code and re.fullmatch(pattern, t.name or "")
        ]
        return _partitions(response)

    # ---- offsets -------------------------------------------------------------------------------------------------------------

    def offsets(self, timestamps: Mapping[Partition, int], read_committed: bool = False) -> Offsets:
        """Return the offsets of partitions from ListOffsets.

        timestamps: maps each partition to EARLIEST (-2), LATEST (-1) or a time in ms since the epoch. A partition gets the offset -1 (`NO_OFFSET`) if
        all its records are older than that time. read_committed: if True, LATEST means the last stable offset instead of the high watermark. Raises
        KafkaError if a broker returns a lasting error, and TimeoutError if temporary failures last longer than `api_timeout_ms`.
        """
        offsets: Offsets = {}

        def attempt() -> Offsets:
            by_leader: dict[int, list[Partition]] = {}
            for partition in timestamps:
                if partition not in offsets:
                    by_leader.setdefault(self.leader(partition), []).append(partition)
            for leader, partitions in by_leader.items():
                request = ListOffsetsRequest(-1, int(read_committed), _by_topic(partitions, timestamps))
                response = self.connection(leader).ask(ApiKey.LIST_OFFSETS, request)
                _take_offsets(response, offsets)
            if missing := timestamps.keys() - offsets.keys():
                names = ", ".join(f"{topic}-{index}" for topic, index in sorted(missing))
                raise Passing(f"the brokers returned no offset for the partitions {names}")
            return offsets

        return self.until_done("cannot look up offsets", attempt)


def check_reachable(settings: ClientSettings) -> None:
    """Connect to one of the bootstrap servers once, to detect wrong options. settings: the options of the client.

    Raises OptionError if no server can be reached, TimeoutError if none responds in time, KafkaError if a server rejects the login or
    supports no API version that this client supports, and SSLCertVerificationError if the certificate of a server is not accepted.
    """
    with Client(settings, fail_fast=True) as client:
        client.until_done("cannot connect", client.any_connection)


def _partitions(response: MetadataResponse) -> list[Partition]:
    return sorted(
        (topic.name or "", partition.partition_index) for topic in response.topics for partition in topic.partitions
    )


def _by_topic(partitions: list[Partition], timestamps: Mapping[Partition, int]) -> list[ListOffsetsTopic]:
    topics: dict[str, ListOffsetsTopic] = {}
    for topic, index in partitions:
        listed = topics.setdefault(topic, ListOffsetsTopic(topic)).partitions
        listed.append(ListOffsetsPartition(index, timestamp=timestamps[topic, index]))
    return list(topics.values())


def _take_offsets(response: Any, offsets: Offsets) -> None:
    failed = 0
    for topic in response.topics:
        for partition in topic.partitions:
            if not partition.error_code:
                offsets[topic.name, partition.partition_index] = partition.offset
            elif partition.error_code in PASSING:
                failed = partition.error_code
            else:
                raise KafkaError(
                    partition.error_code,
                    f"the broker rejected the offset lookup of {topic.name}-{partition.partition_index} "
                    "(does the user lack the right to describe the topic?)",
                )
    if failed:
        raise Passing(error_name(failed))
