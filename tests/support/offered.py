"""Every version of every API that a broker offers as the release that it plays unless told."""

from __future__ import annotations

from kafkaproto.broker.config.release import DEFAULT_RELEASE, ranges_of
from kafkaproto.broker.requests.registry import advertised

OFFERED: dict[int, range] = {
    key: range(one.min_version, one.max_version + 1) for key, one in advertised(ranges_of(DEFAULT_RELEASE)).items()
}
