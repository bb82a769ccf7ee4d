"""Types for the partitions that are assigned to a member of a consumer group (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping

Assignment = Mapping[bytes, frozenset[int]]
"""Maps topic ids to partition indexes. Topics without partitions are left out."""
Place = tuple[bytes, int]
"""Identifies an assigned partition: (topic id, partition index)."""

NOTHING: Assignment = {}
