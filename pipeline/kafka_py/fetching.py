"""Fetches the record batches of a range of offsets of one partition, from its leader or the closest replica (KIP-392).

The next request is sent before the current response is processed. Compacted, aborted and control records are skipped. This module does
not depend on columns or Spark.
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
from kafkaproto.records.entries import Entry, batches, check_crc, complete_bytes, crc_at, records

PREFERRED_MS = 300_000
"""The time in ms for which a preferred follower is read before the next fetch goes to the leader again (``metadata.max.age.ms``)."""
UNKNOWN_OFFSET = -1
GONE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


class Fetched(NamedTuple):
    """A fetched batch of magic 2, or a fetched message of magic 0 or 1.

    entry: the batch or message. start: the first offset to read. Brokers return whole batches, so records with lower offsets must be ignored.
    """

    entry: Entry
    start: int


def fetch(client: Client, settings: SourceSettings, range_: Range) -> Iterator[Fetched]:
    """Yield the batches, or messages of magic 0 or 1, with records of the range, in order. The last may also have records after the range.

    range_: a partition with the first offset to read, and the offset to stop before. Raises DataLoss if records of the range no longer exist and
    `failOnDataLoss` is true, KafkaError if a broker returns a lasting error, DecodeError if a batch is damaged, and TimeoutError if no record is
    fetched for too long.
    """
    fetcher = _Fetcher(client, settings, range_)
    try:
        yield from fetcher.run()
    finally:
        fetcher.stop()


@dataclass
class _Request:
    """A fetch request whose response has not been received yet. position: the fetch offset. follower: True if the request was sent to a follower."""

    connection: Connection
    position: int
    follower: bool


class _Fetcher:
    """The fetches of one range of offsets: the next offset, the pending request and the replica to read from."""

    def __init__(self, client: Client, settings: SourceSettings, range_: Range) -> None:
        self._client = client
        self._settings = settings
        self._range = range_
        self._partition = (range_.topic, range_.partition)
        self._name = f"{range_.topic}-{range_.partition}"
        self._position = range_.start
        self._request: _Request | None = None
        self._follower: int | None = None
        self._follower_until = 0.0
        self._last_progress = time.monotonic()
        self._past_end = self._missing = 0

    def run(self) -> Iterator[Fetched]:
        while self._position < self._range.end:
            try:
                partition = self._receive()
                entries = self._entries(partition)
            except (Passing, OSError) as error:
                self._try_again(error)
                continue
            if not entries:
                self._wait(partition)
                continue
            self._past_end = self._missing = 0
            start = self._position
            self._position = max(start, entries[-1].header.next_offset)
            if self._position < self._range.end:
                self._send_ahead()
            for entry in self._visible(entries, partition.aborted_transactions):
                yield Fetched(entry, start)
            self._last_progress = (
                time.monotonic()
            )  # the time that Spark took for the last rows does not count as waiting

    def stop(self) -> None:
        """Close the connection if a fetch is pending, so that no later request can receive the response to it."""
        if self._request is not None:
            self._client.forget(self._request.connection)
            self._request = None

    # ---- asking --------------------------------------------------------------------------------------------------------------

    def _send(self) -> _Request:
        settings = self._settings
        if self._follower is not None and time.monotonic() > self._follower_until:
            self._follower = None
        leader = self._client.leader(self._partition)
        connection = self._client.connection(leader if self._follower is None else self._follower)
        part = FetchPartition(
            self._range.partition, fetch_offset=self._position, partition_max_bytes=settings.partition_max_bytes
        )
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=int(settings.read_committed),
            topics=[FetchTopic(self._range.topic, partitions=[part])],
            rack_id=settings.rack,
        )
        connection.send(ApiKey.FETCH, request)
        return _Request(connection, self._position, self._follower is not None)

    def _send_ahead(self) -> None:
        """Send the next fetch before its response is needed. An error is ignored: `_receive` then sends the fetch again."""
        try:
            self._request = self._send()
        except (Passing, OSError):
            self._request = None

    def _receive(self) -> PartitionData:
        """Wait for the response to the pending fetch, and return the partition's data in it. If no fetch is pending, send a fetch first.

        Raises Passing or OSError for an error after which the fetch can be repeated.
        """
        if self._request is None:
            self._request = self._send()
        request = self._request
        response: Any = request.connection.receive()
        self._request = None
        if response.error_code:
            raise KafkaError(
                response.error_code,
                f"the broker at {request.connection.address} rejected the fetch from {self._name} at offset {request.position} "
                "(the broker's log may say why)",
            )
        if not response.responses:  # a broker that throttles sends no topics
            return PartitionData(high_watermark=UNKNOWN_OFFSET, last_stable_offset=UNKNOWN_OFFSET)
        partition: PartitionData = response.responses[0].partitions[0]
        if partition.error_code:
            self._check(partition.error_code, request)
        if partition.preferred_read_replica >= 0:
            self._follower = partition.preferred_read_replica
            self._follower_until = time.monotonic() + PREFERRED_MS / 1000
        return partition

    def _check(self, code: int, request: _Request) -> None:
        if request.follower:  # whatever the error is, ask the leader (KIP-392)
            self._follower = None
            raise Passing(
                f"the follower of {self._name} returned the error {error_name(code)}; the next fetch goes to the leader"
            )
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range()
        elif code in GONE:
            raise Missing(error_name(code))
        elif code not in PASSING:
            raise KafkaError(
                code,
                f"the broker rejected the fetch from {self._name} at offset {self._position} (does the user lack the right to read the topic?)",
            )
        raise Passing(error_name(code))

    def _try_again(self, error: Exception) -> None:
        if isinstance(error, OSError):
            self._follower = None
            self._client.close()
            self._request = None
        if isinstance(error, Missing):
            self._missing += 1
            if self._missing > self._settings.num_retries:
                self._lose(
                    f"{self._name} no longer exists, but the query reads it from offset {self._position}",
                    self._range.end,
                )
                return
        waited = time.monotonic() - self._last_progress
        if waited * 1000 > self._client.settings.api_timeout_ms:
            raise TimeoutError(
                f"nothing was fetched from {self._name} at offset {self._position} for {waited:.0f} s (option "
                f"kafka.default.api.timeout.ms); the last error: {error}"
            )
        self._client.back_off()

    # ---- nothing there -------------------------------------------------------------------------------------------------------

    def _wait(self, partition: PartitionData) -> None:
        """Decide what to do after an empty response: fetch again, read from the leader, or give up. partition: the partition's data in the response.

        - A fetch that was throttled, or a follower that lags, gives empty responses for a while, so the fetch is repeated. Raises TimeoutError if no
          record has come for `kafkaConsumer.pollTimeoutMs`.
        - If the log of a follower ends before the offsets that this fetcher must read, the next fetch goes to the leader. If the leader's log also
          ends before them, in several successive responses, the missing records are lost. Raises DataLoss, unless `failOnDataLoss` is false.
        """
        if partition.preferred_read_replica >= 0:
            return
        end = partition.last_stable_offset if self._settings.read_committed else partition.high_watermark
        if self._position >= end > UNKNOWN_OFFSET:
            if self._follower is not None:
                self._follower = None
                return
            self._past_end += 1
            if self._past_end > self._settings.num_retries:
                self._lose(
                    f"{self._name} ends at offset {end}, but the query reads up to offset {self._range.end}",
                    self._range.end,
                )
        elif (time.monotonic() - self._last_progress) * 1000 > self._settings.poll_timeout_ms:
            raise TimeoutError(
                f"{self._name} returned no record at offset {self._position} within {self._settings.poll_timeout_ms} ms; "
                "raise the option kafkaConsumer.pollTimeoutMs to wait longer"
            )

    def _out_of_range(self) -> None:
        earliest = self._client.offsets({self._partition: EARLIEST})[self._partition]
        latest = self._client.offsets({self._partition: LATEST})[self._partition]
        if self._position < earliest:
            text = f"{self._name} begins at offset {earliest}, but the query reads from offset {self._position}"
            self._lose(text, min(earliest, self._range.end))
        elif self._position > latest:
            text = f"{self._name} ends at offset {latest}, but the query reads from offset {self._position}"
            self._lose(text, self._range.end)

    def _lose(self, loss: str, go_on: int) -> None:
        if self._settings.fail_on_data_loss:
            raise DataLoss(loss)
        self._position = go_on

    # ---- what is there -------------------------------------------------------------------------------------------------------

    def _entries(self, partition: PartitionData) -> list[Entry]:
        received: Any = partition.records or b""
        view = memoryview(received)
        return [e for e in batches(view[: complete_bytes(view)]) if e.header.next_offset > self._position]

    def _visible(self, entries: list[Entry], aborted: list[AbortedTransaction] | None) -> Iterator[Entry]:
        """Yield the batches and messages that a consumer may see: no control batches and, with read_committed, no aborted batches.

        As in ``CompletedFetch``, a transactional batch is aborted if it is at or after the first offset of an aborted transaction of the same
        producer, and before the abort marker of that transaction. entries: the fetched batches and messages. aborted: the aborted transactions that
        the response lists. Raises DecodeError for a wrong checksum.
        """
        ahead = (
            sorted(aborted or [], key=lambda transaction: transaction.first_offset)
            if self._settings.read_committed
            else []
        )
        aborting: set[int] = set()
        for entry in entries:
            header = entry.header
            if self._settings.check_crcs and not check_crc(entry.view):
                raise DecodeError(
                    "RecordBatch.crc",
                    crc_at(header),
                    f"the checksum is wrong in the batch of {self._name} whose last offset is {header.last_offset}, so its data is "
                    "damaged; set the option kafka.check.crcs to false to read the batch without this check",
                )
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
