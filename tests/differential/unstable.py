"""Request sequences that differ only in some repetitions: seed to the reason. They are listed, never dropped."""

from __future__ import annotations

UNSTABLE: dict[int, str] = {}
