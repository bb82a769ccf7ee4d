"""The controller mutation quotas of a cluster: how many partitions clients may create and delete (Q-18, KIP-599).

A cluster has one controller, so each client identity (user, client id or both) has one token bucket, whichever broker receives its requests. A
request takes the tokens for a topic once the topic has passed all other checks. Newer request versions are strict: a topic is rejected with an error
while the bucket is below zero; otherwise it is processed, whatever it costs. Clients of older versions do not know this error. Their requests are
always processed, and the clients are throttled if the bucket is below zero afterwards. This module does not depend on Kafka requests. It corresponds
to Kafka's `ControllerMutationQuotaManager` and `ControllerMutationQuota`.
"""

from __future__ import annotations

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.entities import CONTROLLER_MUTATION_RATE
from kafkaproto.broker.quota.precedence import Semantics
from kafkaproto.broker.quota.sensors import LONGEST_THROTTLE_MS, BoundClient, ClientSensors, Sensor, ThrottleReason
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.quota.token_bucket import TokenBucket, refill_ms
from kafkaproto.broker.quota.windows import (
    DEFAULT_METRIC_WINDOWS,
    DEFAULT_SAMPLES,
    DEFAULT_WINDOW_MS,
    MetricWindows,
    SampledRate,
)
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.error_codes import ErrorCode

UNLIMITED = float(2**63 - 1)
"""The tokens per second of a client without a quota, as in Kafka. With so many tokens per second, any bucket is full again within a millisecond."""


class _BucketSensor(Sensor):
    """The token bucket that all clients with the same (user, client-id) tags share.

    samples, window_ms: the bucket holds at most the tokens that it gains in `samples` windows of `window_ms`. metric_windows: the windows over which
    the metrics mutation-rate (created and deleted partitions per second) and throttle-time are measured.
    """

    __slots__ = ("bucket",)

    def __init__(self, samples: int, window_ms: int, metric_windows: MetricWindows) -> None:
        super().__init__(SampledRate(*metric_windows), metric_windows)
        self.bucket = TokenBucket(samples, window_ms)

    @property
    def tokens(self) -> float:
        return self.bucket.tokens


class MutationQuotas(ClientSensors[_BucketSensor]):
    """The token buckets of a cluster's controller mutation quotas (KIP-599); a token stands for one partition to create or delete.

    samples: the setting controller.quota.window.num. window_ms: the setting controller.quota.window.size.seconds, but in ms.
    metric_windows: the windows over which the metrics mutation-rate and throttle-time are measured.
    """

    __slots__ = ("_samples", "_window_ms")

    def __init__(
        self,
        store: ClientQuotaStore,
        semantics: Semantics,
        timers: Timers,
        samples: int = DEFAULT_SAMPLES,
        window_ms: int = DEFAULT_WINDOW_MS,
        metric_windows: MetricWindows = DEFAULT_METRIC_WINDOWS,
    ) -> None:
        self._samples = samples
        self._window_ms = window_ms
        super().__init__(
            "ControllerMutation",
            CONTROLLER_MUTATION_RATE,
            store,
            semantics,
            timers,
            lambda: _BucketSensor(samples, window_ms, metric_windows),
            UNLIMITED,
        )

    def begin(self, user: str, client_id: str | None, strict: bool, now_ms: int) -> MutationCharge:
        """Return an object through which the handler of one request takes tokens, topic by topic.

        strict: True for request versions that know THROTTLING_QUOTA_EXCEEDED: a topic is rejected, and the client throttled, if the bucket is already
        below zero. If False, all topics are processed, and the client is throttled if the bucket is below zero afterwards.
        """
        return MutationCharge(self, user, client_id, strict, now_ms)

    def take(self, user: str, client_id: str | None, partitions: int, strict: bool, now_ms: int) -> int | None:
        """Take one token per partition of a topic from the client's bucket. Returns the client's throttle time in ms, None for no throttle.

        The throttle time is the time until the bucket is no longer below zero. strict: whether topics can be rejected with THROTTLING_QUOTA_EXCEEDED,
        which older request versions lack. With strict=True, if the bucket is below zero before the call, no tokens are taken: the topic must be
        rejected, and the client is throttled. If the bucket is not below zero, the tokens are taken, and the result is None. With strict=False, the
        tokens are always taken, and the client is throttled if the bucket is below zero afterwards.
        """
        client = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        sensor = client.sensor
        sensor.last_used_ms = now_ms
        if strict and sensor.bucket.measure(client.limit, now_ms) < 0:
            return min(refill_ms(sensor.bucket.tokens, client.limit), LONGEST_THROTTLE_MS)
        sensor.rate.record(partitions, now_ms)
        tokens = sensor.bucket.record(partitions, client.limit, now_ms)
        return None if strict or not tokens < 0 else min(refill_ms(tokens, client.limit), LONGEST_THROTTLE_MS)

    def throttled(self, user: str, client_id: str | None, partitions: int, wait_ms: int, now_ms: int) -> ThrottleReason:
        """Record that a client is throttled by the controller mutation quota. Returns the reason, for the journal of throttles that tests read.

        partitions: the number of partitions in all topics of the request. wait_ms: the throttle time in ms.
        """
        client: BoundClient[_BucketSensor] = self._clients.get((user, client_id)) or self._bind(user, client_id, now_ms)
        tokens = client.sensor.bucket.tokens
        return self._throttled(client, partitions, tokens, self._samples * self._window_ms, wait_ms, now_ms)


class MutationCharge:
    """The tokens of a controller mutation quota that one request has taken, one for each partition to create or delete (KIP-599).

    throttle_ms: how long the client must be throttled because of these tokens, 0 if not at all.
    """

    __slots__ = ("_client_id", "_now_ms", "_quotas", "_strict", "_user", "partitions", "throttle_ms")

    def __init__(self, quotas: MutationQuotas, user: str, client_id: str | None, strict: bool, now_ms: int) -> None:
        self._quotas = quotas
        self._user = user
        self._client_id = client_id
        self._strict = strict
        self._now_ms = now_ms
        self.partitions = 0
        """The number of partitions in all topics of the request, including rejected topics."""
        self.throttle_ms = 0

    def take(self, partitions: int) -> None:
        """Take tokens for creating or deleting `partitions` partitions. Does nothing if no controller mutation quota is configured.

        Raises KafkaError THROTTLING_QUOTA_EXCEEDED (89), without taking tokens, if the bucket is below zero and the request version has this error.
        """
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
                f"The quota of controller mutations is used up; retry after {wait_ms} ms.",
            )

    def reason(self) -> ThrottleReason:
        """Return why the client is throttled, and add the throttle time to the client's metrics.

        Call it once, so that the throttle is counted once, and only if `throttle_ms` is not 0.
        """
        return self._quotas.throttled(self._user, self._client_id, self.partitions, self.throttle_ms, self._now_ms)
