"""The API versions that each release of Kafka offers, from 0.9 to 4.2.

The table is generated from ``schemas/releases.json``, which was extracted from the kafka-clients jars. This module imports no messages.
"""

from __future__ import annotations

from functools import cache

from kafkaproto.release_table import NAMES, TABLE

__all__ = ["NAMES", "Ranges", "accepted", "common", "number", "releases", "versions"]

Ranges = dict[int, tuple[int, int]]
"""Maps an API key to (lowest version, highest version), both inclusive."""

PRODUCE = 0
OLDEST_PRODUCE = 3
"""The lowest Produce version that Kafka 4 accepts. Its brokers still advertise version 0, because some clients fail otherwise (KAFKA-18659)."""


def releases() -> list[str]:
    """Return the Kafka releases whose API versions this package knows, oldest first: ``0.9``, ``0.10.0``, …, ``4.2``."""
    return list(TABLE)


def versions(release: str) -> Ranges:
    """Return the API versions in the ApiVersions response of a broker of this Kafka release.

    Releases before 0.10.0 have no ApiVersions; for them, the result has the versions that a broker accepts. Versions that are not stable in the
    release are omitted. ``release`` may have a patch number, which is ignored: ``3.9.1`` is ``3.9``. Raises ValueError, naming the known releases,
    for a release that is not in `releases()`.
    """
    return dict(_ranges(_name(release)))


def accepted(release: str) -> Ranges:
    """Return the API versions that a broker of this Kafka release accepts.

    These are the versions in its ApiVersions response, except the Produce versions 0 to 2 of Kafka 4, which brokers list but reject. Raises
    ValueError for a release that is not in `releases()`.
    """
    ranges = versions(release)
    if PRODUCE in ranges and number(release) >= (4,):
        ranges[PRODUCE] = (OLDEST_PRODUCE, ranges[PRODUCE][1])
    return ranges


def common(client_release: str, broker_release: str) -> Ranges:
    """Return the versions that a Java client of one release and a broker of another have in common. APIs without common versions are omitted.

    For each API, a client uses the highest common version. Raises ValueError for a release that is not in `releases()`.
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
    """Return the versions of each API in a Kafka release, parsed from the text of the release in `TABLE`.

    In the text ``"0:0-11 17:1"``, API 0 has the versions 0 to 11, and API 17 has only version 1.
    """
    result = {}
    for entry in TABLE[release].split():
        key, _, text = entry.partition(":")
        low, _, high = text.partition("-")
        result[int(key)] = (int(low), int(high or low))
    return result


def _name(release: str) -> str:
    """Return a Kafka release as `TABLE` spells it, without the patch number. Raises ValueError for a release that is not in `TABLE`."""
    parts = release.split(".")
    for name in (release, ".".join(parts[:3]), ".".join(parts[:2])):
        if name in TABLE and all(part.isdigit() for part in parts):
            return name
    raise ValueError(f"unknown release {release!r}; known releases are {', '.join(TABLE)}")


def number(release: str) -> tuple[int, ...]:
    """Return a release as a comparable tuple: ``(3, 9, 1)`` for ``3.9.1``."""
    return tuple(int(part) for part in release.split("."))
