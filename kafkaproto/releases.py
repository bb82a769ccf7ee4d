"""Which versions of each API the releases of Kafka offer, from 0.9 to 4.2. Data and arithmetic on ranges; no message is
imported. The table is generated from ``schemas/releases.json``, which was asked of the kafka-clients jars.
"""

from __future__ import annotations

from functools import cache

from kafkaproto.release_table import NAMES, TABLE

__all__ = ["NAMES", "Ranges", "accepted", "common", "number", "releases", "versions"]

Ranges = dict[int, tuple[int, int]]
"""API key to the lowest and the highest version, both included."""

PRODUCE = 0
OLDEST_PRODUCE = 3
"""Kafka 4 knows no older produce requests; its brokers say 0 for the sake of clients that would give up (KAFKA-18659)."""


def releases() -> list[str]:
    """The releases that the table has, oldest first: ``0.9``, ``0.10.0``, …, ``4.2``."""
    return list(TABLE)


def versions(release: str) -> Ranges:
    """What a broker of a release puts into its ApiVersions response (before 0.10.0: what it would have put there).

    Versions that are not stable in the release are left out. ``release`` may have a patch number, which changes nothing:
    ``3.9.1`` is ``3.9``. Raises ValueError for a release that the table has not, naming those that it has.
    """
    return dict(_ranges(_name(release)))


def accepted(release: str) -> Ranges:
    """What a broker of a release takes: as `versions`, but without what it only says for the sake of old clients.

    Raises ValueError for a release that the table has not.
    """
    ranges = versions(release)
    if PRODUCE in ranges and number(release) >= (4,):
        ranges[PRODUCE] = (OLDEST_PRODUCE, ranges[PRODUCE][1])
    return ranges


def common(client_release: str, broker_release: str) -> Ranges:
    """The versions that a Java client and a broker of two releases have in common, without the APIs where there are none.

    A client uses the highest of them. Raises ValueError for a release that the table has not.
    """
    client, broker = accepted(client_release), accepted(broker_release)
    both = {
        key: (max(low, broker[key][0]), min(high, broker[key][1]))
        for key, (low, high) in client.items()
        if key in broker
    }
    return {key: (low, high) for key, (low, high) in both.items() if low <= high}


@cache
def _ranges(release: str) -> Ranges:
    """``"0:0-11 17:1"`` as ranges."""
    result = {}
    for entry in TABLE[release].split():
        key, _, text = entry.partition(":")
        low, _, high = text.partition("-")
        result[int(key)] = (int(low), int(high or low))
    return result


def _name(release: str) -> str:
    """The release as the table has it, without its patch number."""
    parts = release.split(".")
    for name in (release, ".".join(parts[:3]), ".".join(parts[:2])):
        if name in TABLE and all(part.isdigit() for part in parts):
            return name
    raise ValueError(f"release {release!r} is not known; known are {', '.join(TABLE)}")


def number(release: str) -> tuple[int, ...]:
    """A release as something that can be compared: ``3.9.1`` is ``(3, 9, 1)``."""
    return tuple(int(part) for part in release.split("."))
