"""The names that columns had in tables made by earlier versions of this program, so that such tables can still be read."""

from __future__ import annotations

EARLIER_NAMES: dict[str, dict[str, str]] = {
    "requests": {
        "problem": "trouble",
        "has_response": "answered",
        "applied_throttle_ms": "decided_ms",
        "returned_session_id": "answered_session_id",
        "requested_partitions": "asked_partitions",
    },
    "partitions": {
        "position": "place",
        "requested_offset": "asked_offset",
        "requested_timestamp": "asked_timestamp",
        "requested_epoch": "asked_epoch",
        "returned_epoch": "answered_epoch",
        "returned_timestamp": "answered_timestamp",
    },
    "batches": {"position": "place"},
}
"""Maps the name of a table to its renamed columns, as {current name: name in tables made by earlier versions of this program}."""
