"""The API versions and topic settings that a cluster serves, as far as its ApiVersions response shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafkaproto.api import APIS, ApiKey
from kafkaproto.conformance.offered import OFFERED_BY_3_9
from kafkaproto.releases import OLDEST_PRODUCE, Ranges, number, releases, versions

OLDEST_FETCH_OF_4 = 4
"""The lowest Fetch version that Kafka 4 offers (KIP-896)."""
NO_VERSION = (0, -1)


class NotServed(Exception):
    """Raised for a request in a version that the cluster does not serve. The message contains this version and those that are served."""


class Served:
    """The versions in the ApiVersions response of a broker. With `offered=None` the versions are unknown, and every version is sent."""

    def __init__(self, offered: Ranges | None) -> None:
        self.offered = offered
        self._accepted = None if offered is None else _accepted(offered)

    def serves(self, key: int, version: int) -> bool:
        """Return whether the broker serves this version of an API, or its versions are unknown."""
        low, high = self._range(key)
        return self._accepted is None or low <= version <= high

    def _range(self, key: int) -> tuple[int, int]:
        return (self._accepted or {}).get(key, NO_VERSION)

    def check(self, key: int, version: int) -> None:
        """Raise NotServed if the broker does not serve this version of an API."""
        if not self.serves(key, version):
            low, high = self._range(key)
            raise NotServed(f"{_name(key)} v{version} ({_listed(low, high)})")

    def closest(self, key: int, preferred: int, lowest: int = 0) -> int:
        """Return the served version closest to `preferred`, and not below `lowest`. Raises NotServed."""
        if self._accepted is None:
            return preferred
        low, high = self._range(key)
        version = max(lowest, low, min(preferred, high)) if low <= high else preferred
        self.check(key, version)
        return version


NEWER_THAN_3_9 = {
    int(ApiKey.PRODUCE): 12,
    int(ApiKey.DESCRIBE_GROUPS): 6,
    int(ApiKey.END_TXN): 5,
    int(ApiKey.WRITE_TXN_MARKERS): 2,
    int(ApiKey.TXN_OFFSET_COMMIT): 5,
    int(ApiKey.LIST_TRANSACTIONS): 2,
}
"""Maps APIs that this project serves in versions that 3.9 does not have to the highest one."""


def release_of(offered: Ranges | None) -> str | None:
    """Return the newest release of Kafka that offers exactly these versions of the APIs of this project, or None.

    A broker of this project that emulates a release after 3.9 offers only the versions that 3.9 has too, and those of `NEWER_THAN_3_9`.
    """
    if offered is None:
        return None
    own = restricted(offered)
    return next(
        (name for name in reversed(releases()) if own in (restricted(versions(name)), _up_to_3_9(versions(name)))),
        None,
    )


def _up_to_3_9(ranges: Ranges) -> Ranges:
    return {
        key: (low, min(high, NEWER_THAN_3_9.get(key, OFFERED_BY_3_9[key][1])))
        for key, (low, high) in restricted(ranges).items()
    }


def restricted(ranges: Ranges) -> Ranges:
    """Return `ranges` without the APIs that this project does not serve."""
    return {key: ranges[key] for key in OFFERED_BY_3_9 if key in ranges}


def _accepted(offered: Ranges) -> Ranges:
    """Return the versions that the broker accepts.

    Kafka 4 offers Produce versions that it does not accept, because some clients give up otherwise (KAFKA-18659).
    """
    if ApiKey.PRODUCE in offered and offered.get(ApiKey.FETCH, (0, 0))[0] >= OLDEST_FETCH_OF_4:
        low, high = offered[ApiKey.PRODUCE]
        return offered | {int(ApiKey.PRODUCE): (max(low, OLDEST_PRODUCE), high)}
    return offered


def _name(key: int) -> str:
    return APIS[key].name if key in APIS else f"API key {key}"


def _listed(low: int, high: int) -> str:
    if low > high:
        return "the broker does not serve this API"
    return f"the broker serves {low}" if low == high else f"the broker serves {low} to {high}"


class Complete:
    """A cluster that serves all versions and topic settings that the tests use: those of Kafka 3.9."""

    def version(self, key: int, preferred: int, lowest: int = 0) -> int:
        """Return the version for requests whose version does not matter to the test: the served one closest to `preferred`.

        Skips the test if no version from `lowest` on is served.
        """
        return preferred

    def served(self, key: int, versions: Iterable[int]) -> list[int]:
        """Return those of the given versions that the cluster serves. Skips the test if it serves none of them."""
        return list(versions)

    def offered(self) -> Ranges:
        """Return the versions that the cluster must offer in its ApiVersions response."""
        return OFFERED_BY_3_9

    def need_topic_settings(self, settings: Mapping[str, str]) -> None:
        """Skip the test if the release of the cluster rejects a topic with these settings."""


# ---- topic settings ----------------------------------------------------------------------------------------------------------


class Limit(NamedTuple):
    """The releases that know a topic setting, and its limit.

    first: the oldest release that knows it. removed: the release that removed it, or None. lowest_from_4_0: the lowest value that releases
    from 4.0 on accept, None for no limit.
    """

    first: str = "0.9"
    removed: str | None = None
    lowest_from_4_0: int | None = None


LIMITS = {
    "segment.bytes": Limit(lowest_from_4_0=1024 * 1024),  # KIP-1030
    "message.format.version": Limit("0.10.0", "4.0"),  # KIP-724
    "message.timestamp.type": Limit("0.10.0"),  # KIP-32
    "message.downconversion.enable": Limit("2.0", "4.0"),  # KIP-283, KIP-724
    "max.compaction.lag.ms": Limit("2.3"),  # KIP-354
    "min.compaction.lag.ms": Limit("0.10.1"),  # KIP-58
    "message.timestamp.before.max.ms": Limit("3.6"),  # KIP-937
    "message.timestamp.after.max.ms": Limit("3.6"),  # KIP-937
}
"""Maps topic settings to their limits. It has the settings for which some release rejects a value that a test sets."""


def unsupported_settings(release: str, settings: Mapping[str, str]) -> list[str]:
    """Return one text for each topic setting that brokers of a release reject, with the reason. Empty if they accept all."""
    lacks = []
    for name, value in settings.items():
        first, removed, lowest = LIMITS.get(name, Limit())
        if number(release) < number(first):
            lacks.append(f"topic setting {name} (Kafka {first} added it; the cluster serves the versions of {release})")
        elif removed and number(release) >= number(removed):
            lacks.append(
                f"topic setting {name} (Kafka {removed} removed it; the cluster serves the versions of {release})"
            )
        elif lowest and number(release) >= (4, 0) and int(value) < lowest:
            lacks.append(
                f"{name}={value} (Kafka 4.0 and later accept {lowest} or more; the cluster serves the versions of {release})"
            )
    return lacks
