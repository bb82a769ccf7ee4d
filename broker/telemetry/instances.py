"""The clients that send metrics to one broker: which metrics the broker requests of each client, and which requests it rejects.

Each method gets the current time as an argument. This module does not depend on wire messages. It corresponds to Kafka's `ClientMetricsManager`.
"""

from __future__ import annotations

import base64
import math
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple
from uuid import UUID

from kafkaproto.broker.config.client_metrics import DEFAULT_INTERVAL_MS, parsed
from kafkaproto.broker.config.cluster_config import BrokerConfig
from kafkaproto.broker.config.release import is_release_4
from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError
from kafkaproto.hash_order import copy_order, hash_order
from kafkaproto.records import checksum
from kafkaproto.records.compression import Compression, decompress

ZERO_ID, ONE_ID = bytes(16), bytes(15) + b"\1"
RESERVED_IDS = frozenset({ZERO_ID, ONE_ID})
"""The two client instance ids that Kafka never assigns: the UUIDs with the values 0 and 1."""
MOST_INSTANCES = 16384
SHORTEST_EXPIRY_MS = 60_000
INTERVALS_TO_EXPIRY = 3
ALL_METRICS = "*"
COMPRESSION_TYPES = frozenset(int(kind) for kind in Compression)
RETRIED_ERRORS = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""The errors of PushTelemetry after which, from Kafka 4 on, a client may request its subscription before the push interval has passed."""


class ClientAttributes(NamedTuple):
    """The attributes of a client and its connection that the patterns of a subscription can match. client_id: empty if the client has none."""

    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


class PushRequest(NamedTuple):
    """A PushTelemetry request. metrics: OpenTelemetry metrics, compressed. compression: the number of the compression type, which may be unknown."""

    client_instance_id: bytes
    subscription_id: int
    terminating: bool
    compression: int
    metrics: bytes


class TelemetryPush(NamedTuple):
    """Metrics that a broker has accepted. client_instance_id: in base64. payload: the decompressed `MetricsData` message of OpenTelemetry."""

    client_instance_id: str
    client_id: str
    terminating: bool
    compression: Compression
    payload: bytes


@dataclass(slots=True)
class Instance:
    """A client that sends metrics, and the subscription that applies to it.

    - connection_id: the connection whose request created this object.
    - version: the cluster's `client_metrics_version`, which counts changes to subscriptions, at the time when the client's subscription was computed.
      If `client_metrics_version` has risen since then, a new object replaces this one at the client's next request.
    - interval_ms: the push interval.
    - requested_ms, pushed_ms: when the client last requested the subscription, and when it last pushed metrics. A request or push that comes too
      early, so that `begin_request` or `begin_push` returns False, changes neither time.
    - is_terminating: whether the client marked its last push as its final one; True even if that push was rejected.
    - last_error: the error code of the last push; 0 if it was accepted or if the client has requested its subscription since.
    """

    client_instance_id: bytes
    attributes: ClientAttributes
    connection_id: int
    version: int
    subscription_id: int
    metrics: tuple[str, ...]
    interval_ms: int
    requested_ms: float = -math.inf
    pushed_ms: float = -math.inf
    is_terminating: bool = False
    last_error: int = 0
    expires_ms: int = 0

    def begin_request(self, now_ms: int) -> bool:
        """Record that the client requests its subscription. Returns False, and records nothing, if the push interval has not passed yet.

        The interval counts from the client's last push or last request for the subscription, whichever was later.
        """
        if now_ms - max(self.requested_ms, self.pushed_ms) < self.interval_ms:
            return False
        self.requested_ms = now_ms
        return True

    def begin_push(self, now_ms: int) -> bool:
        """Record that the client pushes metrics. Returns False, and records nothing, if the push interval has not passed since the last push.

        The first push after a request for the subscription need not wait.
        """
        if self.requested_ms <= self.pushed_ms and now_ms - self.pushed_ms < self.interval_ms:
            return False
        self.pushed_ms = now_ms
        return True


class TelemetryInstances:
    """The clients that send metrics to one broker: at most 16384. The least recently used client is dropped first (AD-16)."""

    def __init__(self, config: BrokerConfig, rng: Random) -> None:
        self._config = config
        self._rng = rng
        self._is_release_4 = is_release_4(config.cluster.release)
        self._instances: OrderedDict[bytes, Instance] = OrderedDict()

    @property
    def max_bytes(self) -> int:
        """Return the maximum size in bytes of the compressed metrics in one push."""
        size: int = self._config["telemetry.max.bytes"]
        return size

    def subscribe(self, requested_id: bytes, attributes: ClientAttributes, connection_id: int, now_ms: int) -> Instance:
        """Handle a client's request for its subscription. Returns the stored state of the client, which contains the subscription.

        requested_id: the client instance id in the request; `ZERO_ID` if the client has none yet, so that it gets a new one. attributes:
        client id, software and source address of the client; the patterns of subscriptions are compared with them. connection_id: the client's
        connection.

        Raises KafkaError THROTTLING_QUOTA_EXCEEDED (89) if the client must wait until the push interval has passed.
        """
        client_instance_id = self._new_id() if requested_id == ZERO_ID else requested_id
        instance = self._instance(client_instance_id, attributes, connection_id, now_ms)
        # Kafka 3.9.1 means to except these errors, too, but rejects the request.
        is_excepted = self._is_release_4 and instance.last_error in RETRIED_ERRORS
        if not instance.begin_request(now_ms) and not is_excepted:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.last_error = 0
        return instance

    def push(
        self, request: PushRequest, attributes: ClientAttributes, connection_id: int, now_ms: int
    ) -> TelemetryPush | None:
        """Accept metrics that a client pushes, and return them; None if the push is empty. Raises KafkaError if the push is rejected (AD-15).

        attributes, connection_id: the client's attributes and connection, which are stored if the broker does not know the client yet.
        """
        if request.client_instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        instance = self._instance(request.client_instance_id, attributes, connection_id, now_ms)
        try:
            error = self._refusal(instance, request, now_ms)
            if error:
                raise KafkaError(error)
            payload = _decompressed(request)
        except KafkaError as failure:
            instance.last_error = failure.error_code
            raise
        finally:
            instance.is_terminating = request.terminating  # also if the request is rejected
        instance.last_error = 0
        if not payload:
            return None
        compression = Compression(request.compression)
        client_id = instance.attributes.client_id
        return TelemetryPush(text_of(instance.client_instance_id), client_id, request.terminating, compression, payload)

    def _refusal(self, instance: Instance, request: PushRequest, now_ms: int) -> int:
        """Return the error code with which a push of metrics is rejected, or 0 if it is accepted.

        Every push starts a new push interval, even if it is rejected, with two exceptions: a push before the current interval has passed, and a push
        that follows a terminating push of the same client.
        """
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.begin_push(now_ms) and not request.terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if request.subscription_id != instance.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if request.compression not in COMPRESSION_TYPES:
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if len(request.metrics) > self.max_bytes:
            return ErrorCode.TELEMETRY_TOO_LARGE
        return 0

    def connection_closed(self, connection_id: int) -> None:
        """Drop every client whose stored state (`Instance`) was created by a request of this connection.

        Before Kafka 4, do nothing: clients stay until they expire.
        """
        if self._is_release_4:
            closed_keys = [key for key, instance in self._instances.items() if instance.connection_id == connection_id]
            for key in closed_keys:
                del self._instances[key]

    def _instance(self, key: bytes, attributes: ClientAttributes, connection_id: int, now_ms: int) -> Instance:
        """Return the stored state of a client (`Instance`), and extend its expiry.

        A new `Instance` is created in two cases. First, the client has none, or only an expired one. Second, a subscription to client metrics has
        changed since the client's `Instance` was created: the new one then has a newly computed subscription, but the attributes of the old one.
        key: the client instance id. attributes: the client's attributes, used only in the first case. connection_id: stored in a new `Instance`.
        """
        version = self._config.cluster.client_metrics_version
        instance = self._instances.get(key)
        if instance is not None and now_ms >= instance.expires_ms:
            instance = None
        if instance is None:
            instance = self._created(key, attributes, connection_id, version)
        elif instance.version < version:
            instance = self._created(key, instance.attributes, connection_id, version)
        instance.expires_ms = now_ms + max(SHORTEST_EXPIRY_MS, INTERVALS_TO_EXPIRY * instance.interval_ms)
        self._instances[key] = instance
        self._instances.move_to_end(key)
        if len(self._instances) > MOST_INSTANCES:
            self._instances.popitem(last=False)
        return instance

    def _created(self, key: bytes, attributes: ClientAttributes, connection_id: int, version: int) -> Instance:
        cluster, names, interval_ms = self._config.cluster, list[str](), DEFAULT_INTERVAL_MS
        values = {**attributes._asdict(), "client_instance_id": text_of(key)}
        for name in hash_order(cluster.applied_client_metrics):
            subscription = parsed(cluster.applied_client_metrics[name], cluster.release)
            if _matches(subscription.patterns, values):
                names += copy_order(list(subscription.metrics))
                interval_ms = min(interval_ms, subscription.interval_ms)
        metrics = (ALL_METRICS,) if ALL_METRICS in names else tuple(hash_order(names))
        subscription_id = _subscription_id(metrics, interval_ms, key)
        return Instance(key, attributes, connection_id, version, subscription_id, metrics, interval_ms)

    def _new_id(self) -> bytes:
        """Return a random client instance id that no client has. As in Kafka, the id as text does not begin with a dash."""
        while True:
            new_id = UUID(int=self._rng.getrandbits(128), version=4).bytes
            if new_id not in self._instances and not text_of(new_id).startswith("-"):
                return new_id


def text_of(client_instance_id: bytes) -> str:
    """Return a client instance id as text: in base64 for URLs without padding, as Kafka writes it."""
    return base64.urlsafe_b64encode(client_instance_id).decode().rstrip("=")


def _matches(patterns: Mapping[str, re.Pattern[str]], values: Mapping[str, str]) -> bool:
    """Return whether the attributes of a client match a subscription to client metrics.

    patterns: maps names of attributes to regular expressions, each of which must match the whole attribute. values: maps the names of all
    attributes to the values of the client.
    """
    return all(pattern.fullmatch(values[name]) for name, pattern in patterns.items())


def _subscription_id(metrics: tuple[str, ...], interval_ms: int, client_instance_id: bytes) -> int:
    """Return Kafka's id of a subscription: a checksum of metrics and interval, combined with a hash of the client's id."""
    text = f"[{', '.join(metrics)}]{interval_ms}"
    halves = int.from_bytes(client_instance_id[:8]) ^ int.from_bytes(client_instance_id[8:])
    unsigned = (checksum.crc32c(text.encode()) ^ (halves >> 32) ^ halves) & 0xFFFFFFFF
    return unsigned - (1 << 32) if unsigned >> 31 else unsigned


def _decompressed(request: PushRequest) -> bytes:
    """Return the decompressed metrics of a push. Raises KafkaError INVALID_RECORD (87) if they are damaged."""
    if not request.metrics:
        return b""
    try:
        return decompress(request.compression, request.metrics)
    except DecodeError:
        raise KafkaError(ErrorCode.INVALID_RECORD) from None
