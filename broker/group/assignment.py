"""The partitions that a member of a consumer group has, or is to have (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping

Assignment = Mapping[bytes, frozenset[int]]
"""Maps topic ids to partition indexes. Topics without partitions are left out."""
Place = tuple[bytes, int]
"""Identifies a partition: (topic id, partition index)."""

NOTHING: Assignment = {}
