"""How many partitions clients may create and delete: the controller mutation quota of the cluster (Q-18, KIP-599).

There is one controller, so there is one bucket per identity in the cluster, whichever broker was asked. A request pays
topic by topic, when it is known that nothing else is wrong with the topic. Strict: nothing is done while tokens are
below zero; what is begun while there are some is done, however much it is. Permissive, for versions whose clients do not
know the error: everything is done, and whoever went below zero waits. Knows no request; Kafka's
`ControllerMutationQuotaManager` and `ControllerMutationQuota`.
"""

from __future__ import annotations

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.entities import CONTROLLER_MUTATION_RATE
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.sensors import (
    LONGEST_THROTTLE_MS,
    PLAIN_SAMPLES,
    PLAIN_WINDOW_MS,
    BoundClient,
    ClientSensors,
    Sensor,
    ThrottleReason,
)
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.quota.token_bucket import TokenBucket, refill_ms
from kafkaproto.broker.quota.windows import DEFAULT_SAMPLES, DEFAULT_WINDOW_MS, SampledRate
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode

UNLIMITED = float(2**63 - 1)
"""How fast tokens come back to a client without a quota, in Kafka as here: at once, but not within the same instant."""


class _BucketSensor(Sensor):
    """rate: mutation-rate."""

    __slots__ = ("bucket",)

    def __init__(self, samples: int, window_ms: int) -> None:
        super().__init__(SampledRate(PLAIN_SAMPLES, PLAIN_WINDOW_MS))
        self.bucket = TokenBucket(samples, window_ms)

    @property
    def tokens(self) -> float:
        return self.bucket.tokens


class MutationQuotas(ClientSensors[_BucketSensor]):
    """The buckets of a cluster. samples, window_ms: controller.quota.window.num and .size.seconds. Values are partitions."""

    __slots__ = ("_samples", "_window_ms")

    def __init__(
        self,
        store: ClientQuotaStore,
        semantics: Semantics,
        timers: Timers,
        samples: int = DEFAULT_SAMPLES,
        window_ms: int = DEFAULT_WINDOW_MS,
    ) -> None:
        self._samples = samples
        self._window_ms = window_ms
        super().__init__(
            "ControllerMutation",
            CONTROLLER_MUTATION_RATE,
            store,
            semantics,
            timers,
            lambda: _BucketSensor(samples, window_ms),
            UNLIMITED,
        )

    def begin(self, user: str, client_id: str | None, strict: bool, now_ms: int) -> MutationCharge:
        """The charge of one request, which pays as it goes."""
        return MutationCharge(self, user, client_id, strict, now_ms)

    def take(self, user: str, client_id: str | None, partitions: int, strict: bool, now_ms: int) -> int | None:
        """Take tokens for `partitions`; milliseconds until the bucket is no longer below zero, None if it is not.

        strict: nothing is taken when there was less than zero before.
        """
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        sensor = client.sensor
        sensor.last_used_ms = now_ms
        if strict and sensor.bucket.measure(client.limit, now_ms) < 0:
            return min(refill_ms(sensor.bucket.tokens, client.limit), LONGEST_THROTTLE_MS)
        sensor.rate.record(partitions, now_ms)
        tokens = sensor.bucket.record(partitions, client.limit, now_ms)
        return None if strict or tokens >= 0 else min(refill_ms(tokens, client.limit), LONGEST_THROTTLE_MS)

    def throttled(self, user: str, client_id: str | None, partitions: int, wait_ms: int, now_ms: int) -> ThrottleReason:
        """Note that it is this quota that throttles the client; and tell why."""
        client: BoundClient[_BucketSensor] = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        tokens = client.sensor.bucket.tokens
        return self._throttled(client, partitions, tokens, self._samples * self._window_ms, wait_ms, now_ms)


class MutationCharge:
    """What one request has taken, and for how long its client must wait because of it: `throttle_ms`."""

    __slots__ = ("_client_id", "_now_ms", "_quotas", "_strict", "_user", "partitions", "throttle_ms")

    def __init__(self, quotas: MutationQuotas, user: str, client_id: str | None, strict: bool, now_ms: int) -> None:
        self._quotas = quotas
        self._user = user
        self._client_id = client_id
        self._strict = strict
        self._now_ms = now_ms
        self.partitions = 0
        """All that were asked for, refused ones too."""
        self.throttle_ms = 0

    def take(self, partitions: int) -> None:
        """Pay for creating or deleting so many. Raises KafkaError THROTTLING_QUOTA_EXCEEDED if strict and exhausted."""
        if not self._quotas.enabled:
            return
        self.partitions += partitions
        wait_ms = self._quotas.take(self._user, self._client_id, partitions, self._strict, self._now_ms)
        if wait_ms is None:
            return
        self.throttle_ms = wait_ms
        if self._strict:
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"The quota of controller mutations is used up; ask again in {wait_ms} ms.",
            )

    def reason(self) -> ThrottleReason:
        """Why its client is throttled. Call only if it is, and because of this."""
        return self._quotas.throttled(self._user, self._client_id, self.partitions, self.throttle_ms, self._now_ms)
