"""The names that columns had in tables of earlier versions, so that those tables stay readable."""

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
"""Maps each table to the columns that have another name in tables made by earlier versions: {current name: old name}."""
