"""The record batches of a range of offsets of one partition, from its leader or the closest replica (KIP-392).

The next request is on its way while what came is read. What is compacted away, aborted or a marker is passed over.
Must never know columns or Spark.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError
from kafkaproto.messages.fetch import AbortedTransaction, FetchPartition, FetchRequest, FetchTopic, PartitionData
from kafkaproto.pipeline.kafka_py.client import PASSING, Client, Missing, Passing
from kafkaproto.pipeline.kafka_py.connection import Connection
from kafkaproto.pipeline.kafka_py.errors import DataLoss, KafkaError, error_name
from kafkaproto.pipeline.kafka_py.offsets import EARLIEST, LATEST, Range
from kafkaproto.pipeline.kafka_py.options import SourceSettings
from kafkaproto.records.control import ControlRecordType, control_type
from kafkaproto.records.entries import Entry, batches, check_crc, complete_bytes, records

PREFERRED_MS = 300_000
"""How long a follower is read from before the leader is asked again (``metadata.max.age.ms``)."""
NOT_TOLD = -1
GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class Fetched(NamedTuple):
    """A batch or old message. Its records below ``start`` were not asked for: brokers cut nothing open."""

    entry: Entry
    start: int


def fetch(client: Client, settings: SourceSettings, wanted: Range) -> Iterator[Fetched]:
    """The batches and old messages that hold records of the range, in order; the last may hold some behind it.

    Raises DataLoss, KafkaError, DecodeError and TimeoutError.
    """
    fetcher = _Fetcher(client, settings, wanted)
    try:
        yield from fetcher.run()
    finally:
        fetcher.stop()


@dataclass
class _Asked:
    """A fetch on its way."""

    connection: Connection
    position: int
    follower: bool


class _Fetcher:
    """Where one read stands."""

    def __init__(self, client: Client, settings: SourceSettings, wanted: Range) -> None:
        self._client = client
        self._settings = settings
        self._wanted = wanted
        self._partition = (wanted.topic, wanted.partition)
        self._name = f"{wanted.topic}-{wanted.partition}"
        self._position = wanted.start
        self._asked: _Asked | None = None
        self._follower: int | None = None
        self._follower_until = 0.0
        self._last_progress = time.monotonic()
        self._past_end = self._missing = 0

    def run(self) -> Iterator[Fetched]:
        while self._position < self._wanted.end:
            try:
                found = self._receive()
                entries = self._entries(found)
            except (Passing, OSError) as error:
                self._try_again(error)
                continue
            if not entries:
                self._wait(found)
                continue
            self._past_end = self._missing = 0
            start = self._position
            self._position = max(start, entries[-1].header.next_offset)
            if self._position < self._wanted.end:
                self._send_ahead()
            for entry in self._visible(entries, found.aborted_transactions):
                yield Fetched(entry, start)
            self._last_progress = time.monotonic()  # what Spark took for what it was given is not waiting

    def stop(self) -> None:
        """An answer that nobody waits for would be taken for that of the next request."""
        if self._asked is not None:
            self._client.forget(self._asked.connection)
            self._asked = None

    # ---- asking --------------------------------------------------------------------------------------------------------------

    def _send(self) -> _Asked:
        settings = self._settings
        if self._follower is not None and time.monotonic() > self._follower_until:
            self._follower = None
        leader = self._client.leader(self._partition)
        connection = self._client.connection(leader if self._follower is None else self._follower)
        part = FetchPartition(
            self._wanted.partition, fetch_offset=self._position, partition_max_bytes=settings.partition_max_bytes
        )
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=int(settings.read_committed),
            topics=[FetchTopic(self._wanted.topic, partitions=[part])],
            rack_id=settings.rack,
        )
        connection.send(ApiKey.FETCH, request)
        return _Asked(connection, self._position, self._follower is not None)

    def _send_ahead(self) -> None:
        """What fails now is tried again when its answer is wanted."""
        try:
            self._asked = self._send()
        except (Passing, OSError):
            self._asked = None

    def _receive(self) -> PartitionData:
        """What there is at the position. Raises Passing and OSError for what is to be tried again."""
        if self._asked is None:
            self._asked = self._send()
        asked = self._asked
        answer: Any = asked.connection.receive()
        self._asked = None
        if answer.error_code:
            raise KafkaError(answer.error_code, f"fetching from {self._name}")
        if not answer.responses:  # a broker that throttles sends no topics
            return PartitionData(high_watermark=NOT_TOLD, last_stable_offset=NOT_TOLD)
        found: PartitionData = answer.responses[0].partitions[0]
        if found.error_code:
            self._check(found.error_code, asked)
        if found.preferred_read_replica >= 0:
            self._follower = found.preferred_read_replica
            self._follower_until = time.monotonic() + PREFERRED_MS / 1000
        return found

    def _check(self, code: int, asked: _Asked) -> None:
        if asked.follower:  # whatever it is, the leader knows better (KIP-392)
            self._follower = None
            raise Passing(f"a follower answered {error_name(code)}")
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range()
        elif code in GONE:
            raise Missing(error_name(code))
        elif code not in PASSING:
            raise KafkaError(code, f"fetching from {self._name} at offset {self._position}")
        raise Passing(error_name(code))

    def _try_again(self, error: Exception) -> None:
        if isinstance(error, OSError):
            self._follower = None
            self._client.close()
            self._asked = None
        if isinstance(error, Missing):
            self._missing += 1
            if self._missing > self._settings.num_retries:
                self._lose(f"{self._name} is gone, it was to be read from {self._position}", self._wanted.end)
                return
        waited = time.monotonic() - self._last_progress
        if waited * 1000 > self._client.settings.api_timeout_ms:
            raise TimeoutError(f"nothing from {self._name} at offset {self._position} for {waited:.0f} s: {error}")
        self._client.back_off()

    # ---- nothing there -------------------------------------------------------------------------------------------------------

    def _wait(self, found: PartitionData) -> None:
        """An empty answer: a broker that throttles, a follower that is behind, or the end of the log."""
        if found.preferred_read_replica >= 0:
            return
        end = found.last_stable_offset if self._settings.read_committed else found.high_watermark
        if self._position >= end > NOT_TOLD:
            if self._follower is not None:
                self._follower = None
                return
            self._past_end += 1
            if self._past_end > self._settings.num_retries:
                self._lose(f"{self._name} ends at {end}, it was to be read up to {self._wanted.end}", self._wanted.end)
        elif (time.monotonic() - self._last_progress) * 1000 > self._settings.poll_timeout_ms:
            text = (
                f"no record of {self._name} at offset {self._position} came within {self._settings.poll_timeout_ms} ms"
            )
            raise TimeoutError(f"{text} (option kafkaConsumer.pollTimeoutMs)")

    def _out_of_range(self) -> None:
        earliest = self._client.offsets({self._partition: EARLIEST})[self._partition]
        latest = self._client.offsets({self._partition: LATEST})[self._partition]
        if self._position < earliest:
            text = f"{self._name} begins at {earliest}, it was to be read from {self._position}"
            self._lose(text, min(earliest, self._wanted.end))
        elif self._position > latest:
            text = f"{self._name} ends at {latest}, it was to be read from {self._position}"
            self._lose(text, self._wanted.end)

    def _lose(self, what: str, go_on: int) -> None:
        if self._settings.fail_on_data_loss:
            raise DataLoss(what)
        self._position = go_on

    # ---- what is there -------------------------------------------------------------------------------------------------------

    def _entries(self, found: PartitionData) -> list[Entry]:
        received: Any = found.records or b""
        view = memoryview(received)
        return [e for e in batches(view[: complete_bytes(view)]) if e.header.next_offset > self._position]

    def _visible(self, entries: list[Entry], aborted: list[AbortedTransaction] | None) -> Iterator[Entry]:
        """Those that a consumer sees: no markers and, when only committed ones are read, nothing of aborted transactions.

        As in ``CompletedFetch``: a producer is in an aborted transaction from its first offset to its marker.
        """
        ahead = sorted(aborted or [], key=lambda one: one.first_offset) if self._settings.read_committed else []
        aborting: set[int] = set()
        for entry in entries:
            header = entry.header
            if self._settings.check_crcs and not check_crc(entry.view):
                raise DecodeError("RecordBatch.crc", 0, f"of {self._name} at offset {header.last_offset} is wrong")
            while ahead and ahead[0].first_offset <= header.last_offset:
                aborting.add(ahead.pop(0).producer_id)
            producer_id = getattr(header, "producer_id", None)  # old messages have none
            if header.is_control:
                if producer_id in aborting and _aborts(entry):
                    aborting.discard(producer_id)
            elif not (producer_id in aborting and header.is_transactional):  # type: ignore[union-attr]
                yield entry


def _aborts(entry: Entry) -> bool:
    return any(control_type(record.key) == ControlRecordType.ABORT for record in records(entry.view))
