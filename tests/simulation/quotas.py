"""A model of the quotas beside the brokers: their limits, their usage, and the throttle time of every response (X-6).

Its input is the clients' requests, the responses before they are charged, and the simulation's clock. It uses the transcription of Q-2 to
Q-6 and `identity`. It reads the brokers' own sensors only to compare their metrics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from kafkaproto.conformance.slow_rate import SlowRate
from kafkaproto.error_codes import ErrorCode as E
from kafkaproto.messages.alter_client_quotas import AlterClientQuotasRequest
from kafkaproto.messages.create_partitions import CreatePartitionsRequest
from kafkaproto.messages.create_topics import CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.fetch import FetchRequest
from kafkaproto.messages.produce import ProduceRequest
from tests.simulation.identity import DEFAULT, Entity, Identity, Tags, identity, kind_of, of_tags
from tests.support.broker.transcription import SlowBucket

PRODUCE, FETCH, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATION = "controller_mutation_rate"
KEYS = (PRODUCE, FETCH, REQUEST, MUTATION)
NAMES = {PRODUCE: "Produce", FETCH: "Fetch", REQUEST: "Request", MUTATION: "ControllerMutation"}
USER = "ANONYMOUS"
AN_HOUR_MS = 3_600_000
CAP_MS = {PRODUCE: 2**31 - 1, FETCH: 2**31 - 1, REQUEST: 1000}
ALL_WINDOWS_MS = 11_000
JAVA_LONG_MAX = float(2**63 - 1)
FIRST_STRICT = {"CreateTopics": 6, "DeleteTopics": 5, "CreatePartitions": 3}
PERCENT_PER_NANO = 100.0 / 1_000_000_000
"""In floating point, as in Kafka's ClientRequestQuotaManager."""

Change = tuple[Entity, str, float | None]
"""(entity, quota, new value); None removes the quota."""


class SentRequest(NamedTuple):
    """A request as the client sent it. size_bytes: header and body. partitions: of each topic on arrival."""

    request: Any
    version: int
    size_bytes: int
    cost_ms: float
    partitions: dict[str, int]


class Decision(NamedTuple):
    """An expected throttle, which is also in the journal."""

    at_ms: int
    broker_id: int
    connection_id: int
    correlation_id: int
    throttle_ms: int
    quota: str
    tags: Tags
    entity: Entity
    bound: float
    value: float
    rate: float
    window_ms: int


class Throttles:
    """The throttle times of one identity: the last, and the mean of the last minute, in two samples (`Avg`)."""

    SAMPLES, WINDOW_MS = 2, 30_000

    def __init__(self) -> None:
        self.last_ms = 0
        self._times, self._counts = (SlowRate(self.SAMPLES, self.WINDOW_MS) for _ in range(2))

    def add(self, throttle_ms: int, now_ms: int) -> None:
        self.last_ms = throttle_ms
        self._times.record(throttle_ms, now_ms)
        self._counts.record(1, now_ms)

    def mean_ms(self, now_ms: int) -> float | None:
        times, count = (
            sum(s.value for s in rate.slots if now_ms - s.last_ms < self.SAMPLES * self.WINDOW_MS)
            for rate in (self._times, self._counts)
        )
        return times / count if count else None


class Used:
    """What one broker (for `MUTATION` the controller) has counted since its start. ever: kinds of quotas, by key."""

    def __init__(self, values: dict[str, dict[Entity, float]]) -> None:
        self.ever = {key: {kind_of(entity) for entity in values[key]} for key in KEYS}
        self.rates: dict[tuple[str, Tags], SlowRate] = {}
        self.buckets: dict[Tags, SlowBucket] = {}
        self.used_ms: dict[tuple[str, Tags], int] = {}
        self.throttles: dict[tuple[str, Tags], Throttles] = {}

    def touch(self, key: str, tags: Tags, now_ms: int) -> None:
        """Note the use of a sensor (Q-10). No rule says when within the half minute after an hour a sensor expires."""
        if now_ms - self.used_ms.get((key, tags), now_ms) > AN_HOUR_MS:
            self.rates.pop((key, tags), None)
            self.throttles.pop((key, tags), None)
            if key == MUTATION:
                self.buckets.pop(tags, None)
        self.used_ms[key, tags] = now_ms


class Quotas:
    """The expected quotas. values: key to entity to limit, as set by clients. costs: handling times by API, in ms."""

    def __init__(self, semantics: str, brokers: int) -> None:
        self._semantics = semantics
        self.values: dict[str, dict[Entity, float]] = {key: {} for key in KEYS}
        self.costs: dict[str, float] = {}
        self.pending: list[list[Change]] = []
        """Changes requested but not acknowledged; a process that dies may have applied the first of each."""
        self.brokers = [Used(self.values) for _ in range(brokers)]
        self.controller = Used(self.values)
        self.decisions: list[Decision] = []
        """The decisions of this process."""
        self.throttles: Counter[str] = Counter()
        """The number of throttles of all processes, by quota."""

    @property
    def any(self) -> bool:
        return any(self.values.values())

    # ---- configuration -------------------------------------------------------------------------------------------------------

    def change(self, changes: Iterable[Change]) -> None:
        for entity, key, value in changes:
            if value is None:
                self.values[key].pop(entity, None)
            else:
                self.values[key][entity] = value
                for used in (*self.brokers, self.controller):
                    used.ever[key].add(kind_of(entity))

    def broker_starts(self, broker_id: int) -> None:
        """Reset the counts of a broker that starts; it knows the existing quotas."""
        self.brokers[broker_id] = Used(self.values)

    def restart(self, kept_values: dict[tuple[Any, str], float], in_a_step: bool) -> None:
        """Continue with another process: quotas survive, sensors do not. kept_values: the quotas that it has recovered."""
        limits_by_key: dict[str, dict[Entity, float]] = {key: {} for key in KEYS}
        for (entity, key), value in kept_values.items():
            limits_by_key[key][_entity(entity)] = value
        possible = [deepcopy(self.values)]
        for changes in self.pending if in_a_step else ():
            self.change(changes)
            possible.append(deepcopy(self.values))
        assert limits_by_key in possible, f"quotas changed: {possible} became {limits_by_key}"
        self.values = limits_by_key
        self.pending = []
        self.costs.clear()
        self.brokers = [Used(self.values) for _ in self.brokers]
        self.controller = Used(self.values)
        self.decisions.clear()

    def cost_ms(self, broker_id: int, api: str) -> float:
        """Return the time that handling a request takes now; 0 until a request quota has been set (Q-1)."""
        return self.costs.get(api, 0.0) if self.brokers[broker_id].ever[REQUEST] else 0.0

    # ---- usage ---------------------------------------------------------------------------------------------------------------

    def charge_response(
        self,
        who: tuple[int, int, int],
        client_id: str,
        request_of: SentRequest,
        message: Any,
        fetch_bytes: int,
        now_ms: int,
    ) -> int:
        """Return the throttle time of a response before it is sent, in ms.

        who: (broker, connection, correlation id). message: None for acks=0. fetch_bytes: the size by Q-12 of the response with its data.
        """
        request = request_of.request
        if isinstance(request, AlterClientQuotasRequest):
            self._altered(message)
        used = self.brokers[who[0]]
        percent = request_of.cost_ms * 1_000_000 * PERCENT_PER_NANO
        charge = _Charge(self, used, who, client_id, now_ms)
        if isinstance(request, ProduceRequest):
            charge.count(PRODUCE, request_of.size_bytes)
            if message is not None:
                charge.count(REQUEST, percent)
        elif isinstance(request, FetchRequest):
            charge.count(REQUEST, percent)
            charge.count(FETCH, fetch_bytes)
        elif isinstance(request, CreateTopicsRequest | DeleteTopicsRequest | CreatePartitionsRequest):
            self._mutations(charge, request_of, message)
            charge.count(REQUEST, percent)
        else:
            charge.count(REQUEST, percent)
        throttle_ms = charge.finish()
        if throttle_ms and isinstance(request, FetchRequest):
            charge.take_back(FETCH, fetch_bytes)
        return throttle_ms

    def _altered(self, message: Any) -> None:
        assert len(message.entries) == len(self.pending)
        for entry, changes in zip(message.entries, self.pending, strict=True):
            if entry.error_code == 0:
                self.change(changes)
        self.pending = []

    def _mutations(self, charge: _Charge, request_of: SentRequest, message: Any) -> None:
        request = request_of.request
        api = type(request).__name__.removesuffix("Request")
        strict = request_of.version >= FIRST_STRICT[api]
        paid = {0, E.THROTTLING_QUOTA_EXCEEDED, E.KAFKA_STORAGE_ERROR}
        if isinstance(request, CreateTopicsRequest):
            partition_counts = {topic.name: topic.num_partitions for topic in request.topics}
            results = message.topics
        elif isinstance(request, DeleteTopicsRequest):
            names = request.topic_names or [topic.name for topic in request.topics]
            partition_counts = {name: request_of.partitions.get(name, 0) for name in names}
            results = message.responses
        else:
            partition_counts = {
                topic.name: topic.count - request_of.partitions.get(topic.name, 0) for topic in request.topics
            }
            results = message.results
            paid.add(E.INVALID_REPLICATION_FACTOR)  # checked when it is charged
        for result in results:
            if result.error_code in paid:
                charge.mutate(partition_counts[result.name], strict, result)

    # ---- the brokers' journal and metrics -------------------------------------------------------------------------------------

    def check_journal(self, throttles: Sequence[Any], closed_ms: dict[int, int | None], now_ms: int) -> None:
        """Check that every throttle is in the journal with its reason, and that its mute ended exactly on time or with the connection (T-6, T-8)."""
        assert len(throttles) == len(self.decisions), f"{len(throttles)} throttles, not {len(self.decisions)}"
        for throttle, decision in zip(throttles, self.decisions, strict=True):
            reason = throttle.reason
            journal_decision = Decision(
                throttle.at_ms,
                throttle.broker_id,
                throttle.connection_id,
                throttle.correlation_id,
                throttle.throttle_time_ms,
                reason.quota,
                (reason.user, reason.client_id),
                _entity(reason.entity),
                reason.bound,
                reason.value,
                reason.rate,
                reason.window_ms,
            )
            assert journal_decision == decision, f"X-6: the journal has {journal_decision}, not {decision}"
            assert reason.throttle_ms == decision.throttle_ms
            until_ms = decision.at_ms + decision.throttle_ms
            end_ms = closed_ms.get(decision.connection_id)
            if end_ms is None or end_ms > until_ms:
                end_ms = until_ms if now_ms >= until_ms else None
            assert throttle.ended_ms == end_ms, f"T-8: {decision} ended at {throttle.ended_ms}, not {end_ms}"

    def check_metrics(self, used: Used, shown: Iterable[Any], now_ms: int) -> None:
        """Check the metrics of all clients seen in the last hour: rate, limit and last throttle (Q-17, Q-10)."""
        metrics_shown = {
            (m.quota, (m.user, m.client_id)): (m.rate, m.bound, m.last_throttle_ms, m.mean_throttle_ms) for m in shown
        }
        expected_metrics = {}
        for (key, tags), rate in used.rates.items():
            if now_ms - used.used_ms[key, tags] > AN_HOUR_MS:
                continue
            throttles = used.throttles.get((key, tags))
            expected_metrics[NAMES[key], tags] = (
                rate.seen_at(now_ms),
                of_tags(self.values[key], tags).bound,
                throttles.last_ms if throttles else None,
                throttles.mean_ms(now_ms) if throttles else None,
            )
        assert metrics_shown == expected_metrics, f"Q-17: metrics are {metrics_shown}, not {expected_metrics}"

    def identity(self, key: str, used: Used, client_id: str) -> Identity:
        return identity(self.values[key], used.ever[key], USER, client_id, self._semantics)


class _Charge:
    """The charges of one request. The largest throttle counts; among equal ones that of request time (Q-17)."""

    def __init__(self, quotas: Quotas, used: Used, who: tuple[int, int, int], client_id: str, now_ms: int) -> None:
        self._quotas = quotas
        self._used = used
        self._who = who
        self._client_id = client_id
        self._now_ms = now_ms
        self._decisions: dict[str, Decision] = {}
        self._mutated = 0

    def count(self, key: str, value: float) -> None:
        used, now_ms = self._used, self._now_ms
        if not used.ever[key]:
            return
        client_identity = self._quotas.identity(key, used, self._client_id)
        used.touch(key, client_identity.tags, now_ms)
        rate = used.rates.setdefault((key, client_identity.tags), SlowRate())
        rate.record(value, now_ms)
        bound = float("inf") if client_identity.bound is None else client_identity.bound
        throttle_ms = min(rate.throttle_ms(now_ms, bound), CAP_MS[key])
        if throttle_ms:
            self._decide(key, client_identity, throttle_ms, value, *rate.measure(now_ms))

    def take_back(self, key: str, value: float) -> None:
        """Take back a fetch's bytes (Q-13)."""
        if self._used.ever[key]:
            client_identity = self._quotas.identity(key, self._used, self._client_id)
            self._used.rates[key, client_identity.tags].record(-value, self._now_ms)

    def mutate(self, partitions: int, strict: bool, result: Any) -> None:
        """Charge the mutations of one topic and compare whether the broker rejects it."""
        used = self._quotas.controller
        is_refused = result.error_code == E.THROTTLING_QUOTA_EXCEEDED
        if not used.ever[MUTATION]:
            assert not is_refused, f"Q-18: {result}"
            return
        client_identity = self._quotas.identity(MUTATION, used, self._client_id)
        used.touch(MUTATION, client_identity.tags, self._now_ms)
        bucket = used.buckets.setdefault(client_identity.tags, SlowBucket())
        bound = JAVA_LONG_MAX if client_identity.bound is None else client_identity.bound
        throttle_ms = bucket.take(partitions, self._now_ms, bound, strict)
        self._mutated += partitions
        assert is_refused == (strict and throttle_ms is not None), f"Q-18: {bucket.tokens} tokens, {result}"
        if throttle_ms:
            self._decide(MUTATION, client_identity, throttle_ms, self._mutated, bucket.tokens, ALL_WINDOWS_MS)

    def _decide(self, key: str, known: Identity, throttle_ms: int, value: float, rate: float, window_ms: int) -> None:
        assert known.entity is not None and known.bound is not None
        self._decisions[key] = Decision(
            self._now_ms,
            *self._who,
            throttle_ms,
            NAMES[key],
            known.tags,
            known.entity,
            known.bound,
            value,
            rate,
            window_ms,
        )

    def finish(self) -> int:
        """Finish counting and return the throttle time in ms."""
        if not self._decisions:
            return 0
        key, decision = max(self._decisions.items(), key=lambda entry: (entry[1].throttle_ms, entry[0] == REQUEST))
        if key == MUTATION:
            decision = decision._replace(value=self._mutated)  # all mutations of the request
        else:
            throttles = self._used.throttles.setdefault((key, decision.tags), Throttles())
            throttles.add(decision.throttle_ms, decision.at_ms)
        self._quotas.decisions.append(decision)
        self._quotas.throttles[decision.quota] += 1
        return decision.throttle_ms


def _entity(entity: Any) -> Entity:
    """Return a broker's entity, whose default is "", as an entity of this model."""
    user, client_id = (DEFAULT if name == "" else name for name in (entity.user, entity.client_id))
    return user, client_id
