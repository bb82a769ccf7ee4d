"""The line protocol of the member programs in Python; `Member.java`, `go/main.go` and `node/member.js` speak the same.

A program reads one command a line from stdin, as a JSON object with the field `command`:

- `start`, the first one, with `member` (the name in all events), `bootstrap`, `group`, `topics`, `protocol` ("classic" or "consumer"),
  `assignor`, `instance_id` (null unless static) and `session_timeout_ms`
- `subscribe` with `topics`, which replaces the subscription
- `commit`: commit the offsets after the records reported so far, of the partitions that the member owns
- `stop`: leave the group and end

It writes one event a line to stdout, as a JSON object with `event` and, except `ready`, `member`:

- `ready`, the first one, before it reads `start`
- `assigned`, `revoked` and `lost` with `partitions`, a list of [topic, partition], from the rebalance callbacks of the client; `assigned`
  may have `positions`, a list of [topic, partition, offset], if the client continues there without looking up the committed offset
- `records` with `records`, a list of [topic, partition, offset]
- `committed` with `offsets`, a list of [topic, partition, offset], and `commit failed` with `error`
- `stopped` when it has left the group

All programs of a scenario write to the same pipe. A line is written by one call and shorter than 4096 bytes, so that lines are not mixed,
and their order is the order in which the events happened.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any

Partition = tuple[str, int]
MOST_RECORDS = 50
"""The maximum number of records in one event, which keeps its line short."""


class Lines:
    """Commands from stdin and events to stdout. Knows the offsets after the reported records."""

    def __init__(self) -> None:
        os.write(1, b'{"event": "ready"}\n')
        self.start: dict[str, Any] = json.loads(sys.stdin.readline())
        self.commands: queue.Queue[dict[str, Any]] = queue.Queue()
        self.positions: dict[Partition, int] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self.commands.put(json.loads(line))
        self.commands.put({"command": "stop"})

    def next_command(self) -> dict[str, Any] | None:
        """Return the next command, or None if none has arrived."""
        try:
            return self.commands.get_nowait()
        except queue.Empty:
            return None

    def emit(self, event: str, **fields: object) -> None:
        line = json.dumps({"member": self.start["member"], "event": event, **fields}) + "\n"
        os.write(1, line.encode())

    def assigned(self, partitions: Iterable[Partition], positions: Mapping[Partition, int] | None = None) -> None:
        """Report assigned partitions. positions: offsets from which the client continues by itself, also of other partitions."""
        partitions = list(partitions)
        start_positions = {} if positions is None else {p: positions[p] for p in partitions if p in positions}
        self.positions.update(start_positions)
        self.emit(
            "assigned",
            partitions=partitions,
            positions=[[*partition, offset] for partition, offset in start_positions.items()],
        )

    def revoked(self, partitions: Iterable[Partition], event: str = "revoked") -> None:
        partitions = list(partitions)
        for partition in partitions:
            self.positions.pop(partition, None)
        self.emit(event, partitions=partitions)

    def records(self, records: Iterable[tuple[str, int, int]]) -> None:
        """Report all records, also records of partitions that the member does not own: such records are faults of the group."""
        reported = list(records)
        for start in range(0, len(reported), MOST_RECORDS):
            self.emit("records", records=reported[start : start + MOST_RECORDS])
        for topic, partition, offset in reported:
            self.positions[topic, partition] = offset + 1

    def committed(self, positions: dict[Partition, int]) -> None:
        self.emit("committed", offsets=[[*partition, offset] for partition, offset in positions.items()])
