"""The records of a Fetch response that a read_committed consumer returns, found as Kafka's `CompletedFetch` finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kafkaproto.records.batch import Batch, batches, complete_bytes, records

ABORT_MARKER = b"\0\0"


class Visible(NamedTuple):
    """A batch and whether the consumer returns its records. A marker is never visible."""

    batch: Batch
    is_visible: bool


def visible_batches(data: Any) -> Iterator[Visible]:
    """Yield the batches in the response of a partition."""
    aborted = sorted((entry.first_offset, entry.producer_id) for entry in data.aborted_transactions or [])
    dropped: set[int] = set()
    fetched = bytes(data.records or b"")
    for batch in batches(fetched[: complete_bytes(fetched)]):
        header = batch.header
        while aborted and aborted[0][0] <= header.last_offset:
            dropped.add(aborted.pop(0)[1])
        is_aborted = header.is_transactional and header.producer_id in dropped
        yield Visible(batch, not header.is_control and not is_aborted)
        if header.is_control and header.is_transactional:
            # compaction may have removed the marker and kept its empty batch, which then ends nothing
            keys = [record.key for record in records(batch.view)]
            if keys and keys[0] is not None and keys[0][2:4] == ABORT_MARKER:
                dropped.discard(header.producer_id)
