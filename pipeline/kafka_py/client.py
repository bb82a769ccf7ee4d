"""A small blocking client of a cluster: who leads what, which offsets there are, a connection to each broker.

What passes by itself (a leader that moves, a broker that restarts) is tried again until ``api_timeout_ms`` is over. Must
never know ranges, records or Spark.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from ssl import SSLCertVerificationError
from typing import Any, TypeVar

from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafkaproto.pipeline.kafka_py.connection import Connection
from kafkaproto.pipeline.kafka_py.errors import KafkaError, error_name
from kafkaproto.pipeline.kafka_py.offsets import Offsets, Partition
from kafkaproto.pipeline.kafka_py.options import ClientSettings

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
"""Errors that pass by themselves, or with new metadata."""
NO_OFFSET = -1


class Passing(Exception):
    """What was tried did not work now, and may later. The text says why."""


class Missing(Passing):
    """The brokers know no such topic or partition: it is gone, or not there yet."""


class Client:
    """Not for threads, and never pickled: who needs one on an executor makes one there. `close` it."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
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

    # ---- trying again --------------------------------------------------------------------------------------------------------

    def until_done(self, doing: str, attempt: Callable[[], T], timeout_ms: int | None = None) -> T:
        """What an attempt returns, the first that does not raise Passing or OSError. TimeoutError when time is up; SSLCertVerificationError."""
        deadline = time.monotonic() + (self.settings.api_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        while True:
            try:
                return attempt()
            except SSLCertVerificationError:  # an OSError, but none that passes
                raise
            except (Passing, OSError) as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{doing}: {error}") from error
                if isinstance(error, OSError):
                    self.close()
            self.back_off()

    def back_off(self) -> None:
        """Wait before trying again, and forget who leads."""
        self._leaders.clear()
        time.sleep(self.settings.retry_backoff_ms / 1000)

    # ---- brokers and leaders -------------------------------------------------------------------------------------------------

    def any_connection(self) -> Connection:
        """To a known broker or to one of those that were given. Raises the last OSError if none can be reached."""
        if self._open:
            return next(iter(self._open.values()))
        last: OSError | None = None
        given = [(host.strip("[]"), int(port)) for host, _, port in (s.rpartition(":") for s in self.settings.servers)]
        for address in dict.fromkeys((*given, *self._brokers.values())):
            try:
                return self._connect(address)
            except SSLCertVerificationError:
                raise
            except OSError as error:
                last = error
        raise ConnectionError(f"none of {', '.join(self.settings.servers)} can be reached: {last}")

    def connection(self, broker_id: int) -> Connection:
        """To one broker that metadata told of. Raises OSError and Passing."""
        address = self._brokers.get(broker_id)
        if address is None:
            raise Passing(f"broker {broker_id} is not known")
        return self._open.get(address) or self._connect(address)

    def _connect(self, address: tuple[str, int]) -> Connection:
        made = Connection(*address, self.settings)
        self._open[address] = made
        return made

    def forget(self, connection: Connection) -> None:
        """Close a connection that failed, or whose answers nobody waits for any more."""
        connection.close()
        with suppress(StopIteration):
            self._open.pop(next(address for address, one in self._open.items() if one is connection))

    def leader(self, partition: Partition, create: bool = False) -> int:
        """The broker that leads a partition. create: make the topic if the brokers do so. Raises Passing, OSError, KafkaError."""
        if partition not in self._leaders:
            answer = self._ask_metadata([partition[0]], create)
            if any(topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for topic in answer.topics):
                raise Missing(f"there is no topic {partition[0]}")
        if partition not in self._leaders:
            raise Passing(f"{partition[0]}-{partition[1]} has no leader")
        return self._leaders[partition]

    def _ask_metadata(self, topics: list[str] | None, create: bool = False) -> MetadataResponse:
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=create)
        answer: MetadataResponse = self.any_connection().ask(ApiKey.METADATA, request)
        self._brokers = {b.node_id: (b.host, b.port) for b in answer.brokers}
        for topic in answer.topics:
            for found in topic.partitions:
                partition = (topic.name or "", found.partition_index)
                self._leaders.pop(partition, None)
                if found.leader_id in self._brokers:
                    self._leaders[partition] = found.leader_id
        return answer

    # ---- topics --------------------------------------------------------------------------------------------------------------

    def partitions_of(self, topics: Iterable[str], create: bool = False) -> list[Partition]:
        """All partitions of the topics. KafkaError with UNKNOWN_TOPIC_OR_PARTITION if one is not there, TimeoutError."""
        wanted = list(topics)
        if not wanted:
            return []

        def attempt() -> list[Partition]:
            answer = self._ask_metadata(wanted, create)
            for topic in answer.topics:
                passes = topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE or (create and topic.error_code in PASSING)
                if passes:
                    raise Passing(f"topic {topic.name}: {error_name(topic.error_code)}")
                if topic.error_code:
                    raise KafkaError(topic.error_code, f"looking for topic {topic.name}")
            return _partitions(answer)

        return self.until_done(f"looking for {', '.join(wanted)}", attempt)

    def partitions_like(self, pattern: str) -> list[Partition]:
        """All partitions of the topics whose whole name the regular expression matches, Kafka's own topics left out."""
        answer = self.until_done("listing topics", lambda: self._ask_metadata(None))
        answer.topics = [
            t for t in answer.topics if not t.is_internal and not t.error_code and re.fullmatch(pattern, t.name or "")
        ]
        return _partitions(answer)

    # ---- offsets -------------------------------------------------------------------------------------------------------------

    def offsets(self, asked: Mapping[Partition, int], read_committed: bool = False) -> Offsets:
        """For each partition the offset that EARLIEST, LATEST or a time in ms stands for; NO_OFFSET for a time that nobody reaches.

        With read_committed LATEST is the last stable offset. Raises KafkaError and TimeoutError.
        """
        found: Offsets = {}

        def attempt() -> Offsets:
            by_leader: dict[int, list[Partition]] = {}
            for partition in asked:
                if partition not in found:
                    by_leader.setdefault(self.leader(partition), []).append(partition)
            for leader, partitions in by_leader.items():
                request = ListOffsetsRequest(-1, int(read_committed), _by_topic(partitions, asked))
                answer = self.connection(leader).ask(ApiKey.LIST_OFFSETS, request)
                _take_offsets(answer, found)
            if left := asked.keys() - found.keys():
                raise Passing(f"no answer for {sorted(left)}")
            return found

        return self.until_done("looking for offsets", attempt)


def _partitions(answer: MetadataResponse) -> list[Partition]:
    return sorted((topic.name or "", found.partition_index) for topic in answer.topics for found in topic.partitions)


def _by_topic(partitions: list[Partition], asked: Mapping[Partition, int]) -> list[ListOffsetsTopic]:
    topics: dict[str, ListOffsetsTopic] = {}
    for topic, index in partitions:
        listed = topics.setdefault(topic, ListOffsetsTopic(topic)).partitions
        listed.append(ListOffsetsPartition(index, timestamp=asked[topic, index]))
    return list(topics.values())


def _take_offsets(answer: Any, found: Offsets) -> None:
    failed = 0
    for topic in answer.topics:
        for one in topic.partitions:
            if not one.error_code:
                found[topic.name, one.partition_index] = one.offset
            elif one.error_code in PASSING:
                failed = one.error_code
            else:
                raise KafkaError(one.error_code, f"looking for an offset of {topic.name}-{one.partition_index}")
    if failed:
        raise Passing(error_name(failed))
