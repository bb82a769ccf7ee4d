"""The line protocol of the programs that use transactions; `Transactor.java`, `go/main.go` and `node/transactor.js` speak the same.

A program reads one command a line from stdin, as a JSON object, and writes one response a line to stdout before it reads the next:

- `init` with `bootstrap`, `transactional_id`, `timeout_ms`, `group` and `input`: create a producer and initialise its transactions. It
  commits offsets of the group in the topic `input`; `group` is null if it commits none.
- `begin`, `commit`, `abort`
- `send` with `topic`, `partition` and `value`: write a record and wait for its acknowledgement
- `offsets` with `topic` and `offset`: add the offset of partition 0 of the topic, as the next one that the group reads
- `read` with `bootstrap`, `topic`, `partitions`, `isolation` ("read_committed" or "read_uncommitted"), `last` and `further_ms`: read each
  partition from its start until a record has the value `last`, and then for another `further_ms`. The response has `values`, one list of values
  for each partition.

A response is `{"error": null}`, or it has the name of the client's error class or code in `error`, and its text in `message`. A program ends when
stdin does.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

Command = dict[str, Any]
Fields = dict[str, Any]
PATIENCE_SECONDS = 15.0
"""How long a program waits for a record, an acknowledgement, or the end of a transaction."""
FETCH_WAIT_MS = 100
"""`fetch.max.wait.ms` of the consumers: a consumer that has read everything does not wait longer to be closed, or for its next partition."""


def serve(act: Callable[[Command], Fields], name_of: Callable[[Exception], str]) -> None:
    """Carry out the commands of stdin. act: carries out one command and returns further fields of its response. name_of: names an error."""
    for line in sys.stdin:
        try:
            response = {"error": None, **act(json.loads(line))}
        except Exception as error:  # noqa: BLE001  whatever the client raises is the response
            response = {"error": name_of(error), "message": str(error)}
        sys.stdout.write(json.dumps(response) + "\n")
        sys.stdout.flush()


def read_values(poll: Callable[[float], list[str]], command: Command) -> list[str]:
    """Return the values of one partition for a `read`.

    poll: returns the next values, or none after the number of seconds that it is given. Raises TimeoutError if the value `last` is missing.
    """
    values: list[str] = []
    is_complete = False
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (seconds := deadline - time.monotonic()) > 0:
        polled = poll(seconds)
        values += polled
        if command["last"] in polled:
            is_complete = True
            deadline = time.monotonic() + command["further_ms"] / 1000
    if not is_complete:
        raise TimeoutError(f"the partition ends after {values}")
    return values
