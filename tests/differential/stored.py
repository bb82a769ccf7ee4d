"""The records that a conversation leaves in the group's partition of the offsets topic, as plain values that are equal on each subject."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any

from kafkaproto.conformance.group_log import GroupLog
from kafkaproto.conformance.groups import Group
from tests.differential.shown import Shown

RECORDS: tuple[str, dict[str, Any]] = ("records", {})
"""The last step of a conversation: the records that the coordinator has written."""
LEFT_OUT = {
    "commit_timestamp": "a time of the broker's clock",
    "expire_timestamp": "like the field above",
    "current_state_timestamp": "like the field above",
    "timestamp": "like the field above",
    "version": "of a regular expression: the offset of the metadata with which it was resolved",
    "metadata_hash": "depends on topic ids; tested by the conformance suite (GN-17)",
}
"""Fields that are not compared, with the reason."""
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The random part of a member id, of which the player may have seen no response."""
SET_MS = 300
"""The time in ms after which all written records are replicated. Some requests get their response before."""


class StoredRecords:
    """Reads the records of one group that are written from now on.

    patterns: maps the regular expressions of subscriptions to what is shown in their place.
    """

    def __init__(self, group: Group, shown: Shown) -> None:
        self._group = group
        self._log = GroupLog(group)
        self._shown = shown
        self.patterns: dict[str, str] = {}

    def plain(self) -> list[str]:
        """Return each record as text, sorted: their order in a batch depends on hashes of ids, which differ between the subjects."""
        self._group.subject.pass_ms(SET_MS)
        return sorted(UUID.sub("a UUID", repr(self._plain(record))) for record in self._log.new())

    def _plain(self, value: Any) -> Any:
        if is_dataclass(value):
            return {f.name: self._plain(getattr(value, f.name)) for f in fields(value) if f.name not in LEFT_OUT}
        if isinstance(value, list | tuple):
            items = [self._plain(item) for item in value]
            return sorted(items, key=repr) if isinstance(value, list) else tuple(items)
        if isinstance(value, str) and value in self.patterns:
            return self.patterns[value]
        return self._shown.plain(value)
