"""The API versions and topic settings that a cluster serves, derived from its ApiVersions response or its Kafka release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from kafkaproto.api import APIS, ApiKey
from kafkaproto.conformance.offered import OFFERED_BY_3_9
from kafkaproto.releases import OLDEST_PRODUCE, Ranges, number, releases, versions

OLDEST_FETCH_OF_4 = 4
"""The lowest Fetch version that Kafka 4 offers (KIP-896)."""
NO_VERSION = (0, -1)
CONSUMER_GROUP_APIS = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE)
"""The APIs of the KIP-848 protocol. Releases after 3.9 always serve them, 3.9 only if a broker setting enables the protocol (GN-1)."""


class NotServed(Exception):
    """Raised for a request in a version that the cluster does not serve. The message contains this version and the served versions."""


class Served:
    """The versions in the ApiVersions response of a broker. If `offered` is None, the versions are unknown and every version counts as served."""

    def __init__(self, offered: Ranges | None) -> None:
        self.offered = offered
        self._accepted = None if offered is None else _accepted(offered)

    def serves(self, key: int, version: int) -> bool:
        """Return whether the broker serves this version of an API; True if its versions are unknown. key: the API key."""
        low, high = self._range(key)
        return self._accepted is None or low <= version <= high

    def _range(self, key: int) -> tuple[int, int]:
        return (self._accepted or {}).get(key, NO_VERSION)

    def check(self, key: int, version: int) -> None:
        """Raise NotServed if the broker does not serve this version of an API. key: the API key."""
        if not self.serves(key, version):
            low, high = self._range(key)
            raise NotServed(f"{_name(key)} v{version} ({_listed(low, high)})")

    def closest(self, key: int, preferred: int, lowest: int = 0) -> int:
        """Return the served version that is closest to `preferred` and not below `lowest`. Raises NotServed if there is none.

        key: the API key.
        """
        if self._accepted is None:
            return preferred
        low, high = self._range(key)
        version = max(lowest, low, min(preferred, high)) if low <= high else preferred
        self.check(key, version)
        return version


def release_of(offered: Ranges | None) -> str | None:
    """Return the newest Kafka release that offers exactly these API versions; None if no release does, or if `offered` is None.

    Compares only the APIs that Kafka 3.9 offers whatever its settings (`OFFERED_BY_3_9`).
    """
    if offered is None:
        return None
    own = restricted(offered)
    return next((name for name in reversed(releases()) if own == restricted(versions(name))), None)


def restricted(ranges: Ranges) -> Ranges:
    """Return a copy of `ranges` with only the APIs that Kafka 3.9 offers whatever its settings.

    ranges: maps API keys to (lowest, highest version).
    """
    return {key: ranges[key] for key in OFFERED_BY_3_9 if key in ranges}


def _accepted(offered: Ranges) -> Ranges:
    """Return the API versions that a broker accepts, given the versions that it offers in its ApiVersions response.

    Kafka 4 offers Produce from version 0 on, because some clients fail otherwise (KAFKA-18659), but accepts only version 3 and later.
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
    """Base class of clusters under test.

    Its methods describe a cluster with all API versions and topic settings of Kafka 3.9. Subclasses for other clusters override them.
    """

    def version(self, key: int, preferred: int, lowest: int = 0) -> int:
        """Return the served version of an API that is closest to `preferred`, for requests whose version does not matter to the test.

        key: the API key. lowest: the lowest version that the test can use. Skips the current test if the cluster serves no version from `lowest` on.
        """
        return preferred

    def served(self, key: int, versions: Iterable[int]) -> list[int]:
        """Return which of the given versions of an API the cluster serves. Skips the current test if it serves none of them.

        key: the API key.
        """
        return list(versions)

    def offered(self) -> Ranges:
        """Return the versions that the cluster must offer in its ApiVersions response."""
        return OFFERED_BY_3_9

    def topic_settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Return these topic settings in the form that the cluster's release accepts.

        From Kafka 4.2 on, a `segment.bytes` below 1 MiB is renamed to `internal.segment.bytes`. Nothing else is changed.
        """
        return dict(settings)

    def need_topic_settings(self, settings: Mapping[str, str]) -> None:
        """Skip the current test if the release of the cluster rejects a topic with these settings."""


class Newer(Complete):
    """A cluster whose release is known and newer than 3.9. Tests may use the API versions of this release.

    release: for example "4.2". If this release serves no version that a test can use, the method `version` raises NotServed. A test must therefore
    exclude such releases with its marker `releases`.
    """

    release: str

    @cached_property
    def _served(self) -> Served:
        consumer_groups = {key: versions(self.release)[key] for key in CONSUMER_GROUP_APIS}
        return Served(self.offered() | consumer_groups)

    def version(self, key: int, preferred: int, lowest: int = 0) -> int:
        return self._served.closest(key, preferred, lowest)

    def served(self, key: int, versions: Iterable[int]) -> list[int]:
        return [version for version in versions if self._served.serves(key, version)]

    def offered(self) -> Ranges:
        return restricted(versions(self.release))

    def topic_settings(self, settings: Mapping[str, str]) -> dict[str, str]:
        return settings_in(self.release, settings)


# ---- topic settings ----------------------------------------------------------------------------------------------------------


class Limit(NamedTuple):
    """The releases that have a topic setting, and the lowest value of the setting that releases from 4.0 on accept.

    first: the oldest release with the setting. removed: the release that removed the setting, or None. lowest_from_4_0: the lowest value that
    releases from 4.0 on accept, None for no limit.
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
"""Maps the name of a topic setting to the releases that know it and the lowest value that releases from 4.0 on accept.

Contains only settings that tests use and that some Kafka release rejects: either the release lacks the setting, or the value is too low.
"""


INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"
"""The setting with which tests of Kafka 4.2 create segments that are smaller than `segment.bytes` allows (KIP-1030)."""


def settings_in(release: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return topic settings in the form that a release accepts: from 4.2 on, a `segment.bytes` below 1 MiB is renamed to `internal.segment.bytes`."""
    lowest = LIMITS["segment.bytes"].lowest_from_4_0 or 0
    size_bytes = settings.get("segment.bytes")
    if size_bytes is None or number(release) < (4, 2) or not 0 < int(size_bytes) < lowest:
        return dict(settings)
    return {INTERNAL_SEGMENT_BYTES if name == "segment.bytes" else name: value for name, value in settings.items()}


def unsupported_settings(release: str, settings: Mapping[str, str]) -> list[str]:
    """Return one text for each topic setting that brokers of a release reject, with the reason. Empty if they accept all."""
    unmet = []
    for name, value in settings.items():
        first, removed, lowest = LIMITS.get(name, Limit())
        if number(release) < number(first):
            unmet.append(f"topic setting {name} (Kafka {first} added it; the cluster serves the versions of {release})")
        elif removed and number(release) >= number(removed):
            unmet.append(
                f"topic setting {name} (Kafka {removed} removed it; the cluster serves the versions of {release})"
            )
        elif lowest and number(release) >= (4, 0) and int(value) < lowest:
            unmet.append(
                f"{name}={value} (Kafka 4.0 and later accept {lowest} or more; the cluster serves the versions of {release})"
            )
    return unmet
