"""Conversations that differ in some plays and not in others: seed to the reason. Listed, never dropped."""

from __future__ import annotations

UNSTABLE: dict[int, str] = {}
