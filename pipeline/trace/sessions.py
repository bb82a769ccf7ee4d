"""What an incremental fetch leaves unsaid (KIP-227): of each session what was asked in its steps before.

Must be told of all fetches of a run in their order. Where a step is missing, nothing is made up: only what a request says itself is
known, until its session begins anew. Must never know rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

FINAL_EPOCH, FIRST_EPOCH = -1, 0
LAST_EPOCH = 2**31 - 1

Key = tuple[str, bytes, int]
"""(topic name, topic id, partition) as requests have it: one of the first two is empty."""


class _Session(NamedTuple):
    """epoch: of the step that comes next."""

    epoch: int
    asked: dict[Key, Any]


class Sessions:
    """The sessions of all brokers of one run."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], _Session] = {}

    def asked(self, broker: int, request: Any, response: Any) -> dict[Key, Any]:
        """What a fetch asks for, as its `FetchPartition` of whatever step. response: None where it is not known."""
        named = {(t.topic, t.topic_id, p.partition): p for t in request.topics for p in t.partitions}
        key = broker, request.session_id
        before = self._open.pop(key, None)
        failed = response is None or response.error_code
        if request.session_epoch == FINAL_EPOCH or failed:
            return named
        if request.session_epoch == FIRST_EPOCH:
            if response.session_id:
                self._open[broker, response.session_id] = _Session(1, named)
            return named
        if before is None or before.epoch != request.session_epoch:
            return named
        asked = before.asked | named
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                asked.pop((topic.topic, topic.topic_id, partition), None)
        self._open[key] = _Session(1 if before.epoch == LAST_EPOCH else before.epoch + 1, asked)
        return asked
