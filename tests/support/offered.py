"""Every version of every API that a broker offers with the default release."""

from __future__ import annotations

from kafkaproto.broker.config.release import DEFAULT_RELEASE, ranges_of
from kafkaproto.broker.requests.registry import advertised

OFFERED: dict[int, range] = {
    key: range(api_range.min_version, api_range.max_version + 1)
    for key, api_range in advertised(ranges_of(DEFAULT_RELEASE)).items()
}
