"""Logs throttles at INFO. Each line contains the client and the reason: an exceeded quota, or a rule by which a test forces throttles.

On each broker there is at most one line a second for each quota of an entity and for each rule, because a throttled client may send a thousand
requests a second. Times are those of the cluster's clock.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkaproto.broker.observe.journal import ThrottleSeen, throttle_of
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.runtime.events import Observer

if TYPE_CHECKING:
    from kafkaproto.broker.observe.journal import Reason
    from kafkaproto.broker.requests.exchange import Exchange

logger = logging.getLogger("kafkaproto.quota")

EVERY_MS = 1000
REMEMBERED = 1000
"""The number of stored causes of throttles at which `ThrottleLog` drops old causes from memory.

A cause is a quota of an entity on one broker, or a forced-throttle rule on one broker; `ThrottleLog` stores the time of its last log line. A cause is
old if it had no log line in the last second. Newer causes are never dropped, so `ThrottleLog` may store more than this number.
"""


class ThrottleLog(Observer):
    """Logs throttles, but on each broker at most one per second for each cause.

    A cause is a quota of an entity, or a rule by which a test forces throttles. A log line also says how many throttles with the same cause were not
    logged since the previous line.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[object, ...], tuple[int, int]] = {}

    def throttled(self, exchange: Exchange, throttle_ms: int, reason: Reason, held: bool) -> None:
        if logger.isEnabledFor(logging.INFO):
            self.note(throttle_of(exchange, throttle_ms, reason, held))

    def note(self, throttle: ThrottleSeen) -> None:
        """Log a throttle, or only count it if a throttle on the same broker with the same cause was logged in the last second.

        The cause is a quota of an entity, or a rule by which a test forces throttles.
        """
        reason = throttle.reason
        key: tuple[object, ...]
        if isinstance(reason, ForcedThrottle):
            key = (throttle.broker_id, "Forced", reason.rule_id)
        else:
            key = (throttle.broker_id, reason.quota, reason.entity)
        said_ms, quiet = self._last.get(key, (throttle.at_ms - EVERY_MS, 0))
        if 0 <= throttle.at_ms - said_ms < EVERY_MS:
            self._last[key] = (said_ms, quiet + 1)
            return
        if len(self._last) >= REMEMBERED:
            self._forget_old(throttle.at_ms)
        self._last[key] = (throttle.at_ms, 0)
        further_throttles = f"; {quiet} more since the last line" if quiet else ""
        logger.info(
            "broker %d: %s v%d of client-id %r: %s%s",
            throttle.broker_id,
            throttle.api,
            throttle.api_version,
            throttle.client_id,
            _duration_and_reason(throttle),
            further_throttles,
        )

    def _forget_old(self, now_ms: int) -> None:
        self._last = {key: last for key, last in self._last.items() if 0 <= now_ms - last[0] < EVERY_MS}


def _duration_and_reason(throttle: ThrottleSeen) -> str:
    reason = throttle.reason
    throttled = f"{'held back' if throttle.held else 'throttled'} for {throttle.throttle_time_ms} ms"
    if isinstance(reason, ForcedThrottle):
        return f"{throttled} by rule {reason.rule_id}"
    return f"{throttled}: {reason}"
