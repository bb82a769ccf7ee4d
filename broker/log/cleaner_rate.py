"""The limit of the rate at which compaction reads and writes on each broker (`log.cleaner.io.max.bytes.per.second`, `Throttler` in Kafka).

Kafka's cleaner threads sleep while they clean a log. This broker cleans a log in one step, and the limit delays the next cleaning instead. This
module does not depend on logs, replicas or timers.
"""

from __future__ import annotations

import math

from kafkaproto.broker.config.cluster_config import BrokerConfig

SETTING = "log.cleaner.io.max.bytes.per.second"
UNLIMITED = float.fromhex("0x1.fffffffffffffp+1023")
"""The default of the setting, Java's `Double.MAX_VALUE`."""


class CleanerRate:
    """Limits the rate of compaction by deciding when each broker may clean its next log. config: the settings of the cluster's brokers."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        self._cleanings: dict[int, tuple[int, int]] = {}
        """Maps the id of a broker to the time in ms of its last cleaning and the bytes that this cleaning read and wrote."""

    def cleaned(self, broker_id: int, size_bytes: int, now_ms: int) -> None:
        """Record that a broker has cleaned a log at `now_ms`. size_bytes: the number of bytes that it read and wrote."""
        if self.limits(broker_id):
            self._cleanings[broker_id] = now_ms, size_bytes

    def limits(self, broker_id: int) -> bool:
        """Return whether the rate of a broker is limited. As in Kafka, a negative rate is no limit."""
        return 0 <= self._rate_of(broker_id) < UNLIMITED

    def free_ms(self, broker_id: int) -> float:
        """Return the time in ms from which a broker may clean its next log; 0 if it need not wait.

        It is the time of the broker's last cleaning plus the time that the bytes of this cleaning take at the present rate; infinity if the rate is
        0. A broker that has cleaned no log, or whose rate is not limited, need not wait.
        """
        cleaning = self._cleanings.get(broker_id)
        if cleaning is None or not self.limits(broker_id):
            return 0
        cleaned_ms, size_bytes = cleaning
        rate = self._rate_of(broker_id)
        return cleaned_ms + 1000 * size_bytes / rate if rate else math.inf

    def clear(self) -> None:
        """Forget all cleanings, because the cluster is reset."""
        self._cleanings.clear()

    def _rate_of(self, broker_id: int) -> float:
        return float(self._config.cluster.get(broker_id, SETTING))
