"""What quotas must do, kept beside the brokers: who has which, what was used of them, and the throttle of every answer (X-6).

Fed by what clients sent, by what is about to be answered, and by the simulation's clock; judged by the transcription of Q-2 to Q-6 and by
`identity`. Must never look into the brokers' own sensors, but to compare what they show.
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
"""In doubles as Kafka's ClientRequestQuotaManager has it."""

Change = tuple[Entity, str, float | None]
"""None: removed."""


class Asked(NamedTuple):
    """One request as its client sent it. size_bytes: header and body; partitions: of each topic, when it came."""

    request: Any
    version: int
    size_bytes: int
    cost_ms: float
    partitions: dict[str, int]


class Decision(NamedTuple):
    """One throttle as it must be, in the journal too."""

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
    """Of one identity: the last one, and the mean of those of the last minute, in two samples (`Avg`)."""

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
    """What one broker has counted since its start, or for `MUTATION` the controller. ever: kinds, by key."""

    def __init__(self, values: dict[str, dict[Entity, float]]) -> None:
        self.ever = {key: {kind_of(entity) for entity in values[key]} for key in KEYS}
        self.rates: dict[tuple[str, Tags], SlowRate] = {}
        self.buckets: dict[Tags, SlowBucket] = {}
        self.used_ms: dict[tuple[str, Tags], int] = {}
        self.throttles: dict[tuple[str, Tags], Throttles] = {}

    def touch(self, key: str, tags: Tags, now_ms: int) -> None:
        """Q-10. When exactly a sensor goes within the half minute after the hour is nowhere asked."""
        if now_ms - self.used_ms.get((key, tags), now_ms) > AN_HOUR_MS:
            self.rates.pop((key, tags), None)
            self.throttles.pop((key, tags), None)
            if key == MUTATION:
                self.buckets.pop(tags, None)
        self.used_ms[key, tags] = now_ms


class Quotas:
    """values: key to entity to bound, as clients have set them. costs: of requests, by API, in ms."""

    def __init__(self, semantics: str, brokers: int) -> None:
        self._semantics = semantics
        self.values: dict[str, dict[Entity, float]] = {key: {} for key in KEYS}
        self.costs: dict[str, float] = {}
        self.pending: list[list[Change]] = []
        """What is being asked for; a process that dies may have done the first of it."""
        self.brokers = [Used(self.values) for _ in range(brokers)]
        self.controller = Used(self.values)
        self.decisions: list[Decision] = []
        """Of this process."""
        self.throttles: Counter[str] = Counter()
        """How many there were, by quota, of all processes."""

    @property
    def any(self) -> bool:
        return any(self.values.values())

    # ---- what is configured --------------------------------------------------------------------------------------------------

    def change(self, changes: Iterable[Change]) -> None:
        for entity, key, value in changes:
            if value is None:
                self.values[key].pop(entity, None)
            else:
                self.values[key][entity] = value
                for used in (*self.brokers, self.controller):
                    used.ever[key].add(kind_of(entity))

    def starts(self, broker_id: int) -> None:
        """A broker begins: it has counted nothing, and knows of the quotas that there are."""
        self.brokers[broker_id] = Used(self.values)

    def goes_on(self, told: dict[tuple[Any, str], float], in_a_step: bool) -> None:
        """Another process goes on: quotas survive, sensors do not. told: what it has."""
        found: dict[str, dict[Entity, float]] = {key: {} for key in KEYS}
        for (entity, key), value in told.items():
            found[key][_entity(entity)] = value
        possible = [deepcopy(self.values)]
        for changes in self.pending if in_a_step else ():
            self.change(changes)
            possible.append(deepcopy(self.values))
        assert found in possible, f"quotas changed: {possible} became {found}"
        self.values = found
        self.pending = []
        self.costs.clear()
        self.brokers = [Used(self.values) for _ in self.brokers]
        self.controller = Used(self.values)
        self.decisions.clear()

    def cost_ms(self, broker_id: int, api: str) -> float:
        """What a request that is handled now costs; nothing while nobody's time was ever limited (Q-1)."""
        return self.costs.get(api, 0.0) if self.brokers[broker_id].ever[REQUEST] else 0.0

    # ---- what is used --------------------------------------------------------------------------------------------------------

    def answers(
        self,
        who: tuple[int, int, int],
        client_id: str,
        asked: Asked,
        message: Any,
        fetch_bytes: int,
        now_ms: int,
    ) -> int:
        """The throttle of an answer that is about to go out, in ms.

        who: (broker, connection, correlation id). message: None for acks=0. fetch_bytes: what Q-12 counts, of the answer with its data.
        """
        request = asked.request
        if isinstance(request, AlterClientQuotasRequest):
            self._altered(message)
        used = self.brokers[who[0]]
        percent = asked.cost_ms * 1_000_000 * PERCENT_PER_NANO
        charge = _Charge(self, used, who, client_id, now_ms)
        if isinstance(request, ProduceRequest):
            charge.count(PRODUCE, asked.size_bytes)
            if message is not None:
                charge.count(REQUEST, percent)
        elif isinstance(request, FetchRequest):
            charge.count(REQUEST, percent)
            charge.count(FETCH, fetch_bytes)
        elif isinstance(request, CreateTopicsRequest | DeleteTopicsRequest | CreatePartitionsRequest):
            self._mutations(charge, asked, message)
            charge.count(REQUEST, percent)
        else:
            charge.count(REQUEST, percent)
        throttle_ms = charge.over()
        if throttle_ms and isinstance(request, FetchRequest):
            charge.take_back(FETCH, fetch_bytes)
        return throttle_ms

    def _altered(self, message: Any) -> None:
        assert len(message.entries) == len(self.pending)
        for entry, changes in zip(message.entries, self.pending, strict=True):
            if entry.error_code == 0:
                self.change(changes)
        self.pending = []

    def _mutations(self, charge: _Charge, asked: Asked, message: Any) -> None:
        request = asked.request
        api = type(request).__name__.removesuffix("Request")
        strict = asked.version >= FIRST_STRICT[api]
        paid = {0, E.THROTTLING_QUOTA_EXCEEDED, E.KAFKA_STORAGE_ERROR}
        if isinstance(request, CreateTopicsRequest):
            wanted = {topic.name: topic.num_partitions for topic in request.topics}
            told = message.topics
        elif isinstance(request, DeleteTopicsRequest):
            names = request.topic_names or [topic.name for topic in request.topics]
            wanted = {name: asked.partitions.get(name, 0) for name in names}
            told = message.responses
        else:
            wanted = {topic.name: topic.count - asked.partitions.get(topic.name, 0) for topic in request.topics}
            told = message.results
            paid.add(E.INVALID_REPLICATION_FACTOR)  # looked at when it is paid
        for result in told:
            if result.error_code in paid:
                charge.mutate(wanted[result.name], strict, result)

    # ---- what the brokers show -----------------------------------------------------------------------------------------------

    def check_journal(self, throttles: Sequence[Any], closed_ms: dict[int, int | None], now_ms: int) -> None:
        """Every throttle is in the journal, with its reason, and its mute ended on the dot, or with the connection (T-6, T-8)."""
        assert len(throttles) == len(self.decisions), f"{len(throttles)} throttles, not {len(self.decisions)}"
        for seen, wanted in zip(throttles, self.decisions, strict=True):
            reason = seen.reason
            found = Decision(
                seen.at_ms,
                seen.broker_id,
                seen.connection_id,
                seen.correlation_id,
                seen.throttle_time_ms,
                reason.quota,
                (reason.user, reason.client_id),
                _entity(reason.entity),
                reason.bound,
                reason.value,
                reason.rate,
                reason.window_ms,
            )
            assert found == wanted, f"X-6: the journal has {found}, not {wanted}"
            assert reason.throttle_ms == wanted.throttle_ms
            until_ms = wanted.at_ms + wanted.throttle_ms
            end_ms = closed_ms.get(wanted.connection_id)
            if end_ms is None or end_ms > until_ms:
                end_ms = until_ms if now_ms >= until_ms else None
            assert seen.ended_ms == end_ms, f"T-8: {wanted} ended at {seen.ended_ms}, not {end_ms}"

    def check_metrics(self, used: Used, shown: Iterable[Any], now_ms: int) -> None:
        """Q-17, Q-10: who was seen in the last hour, with rate, bound and last throttle."""
        found = {
            (m.quota, (m.user, m.client_id)): (m.rate, m.bound, m.last_throttle_ms, m.mean_throttle_ms) for m in shown
        }
        wanted = {}
        for (key, tags), rate in used.rates.items():
            if now_ms - used.used_ms[key, tags] > AN_HOUR_MS:
                continue
            throttles = used.throttles.get((key, tags))
            wanted[NAMES[key], tags] = (
                rate.seen_at(now_ms),
                of_tags(self.values[key], tags).bound,
                throttles.last_ms if throttles else None,
                throttles.mean_ms(now_ms) if throttles else None,
            )
        assert found == wanted, f"Q-17: metrics are {found}, not {wanted}"

    def identity(self, key: str, used: Used, client_id: str) -> Identity:
        return identity(self.values[key], used.ever[key], USER, client_id, self._semantics)


class _Charge:
    """One request's. The largest throttle counts; of equal ones request time's (Q-17)."""

    def __init__(self, quotas: Quotas, used: Used, who: tuple[int, int, int], client_id: str, now_ms: int) -> None:
        self._quotas = quotas
        self._used = used
        self._who = who
        self._client_id = client_id
        self._now_ms = now_ms
        self._found: dict[str, Decision] = {}
        self._mutated = 0

    def count(self, key: str, value: float) -> None:
        used, now_ms = self._used, self._now_ms
        if not used.ever[key]:
            return
        found = self._quotas.identity(key, used, self._client_id)
        used.touch(key, found.tags, now_ms)
        rate = used.rates.setdefault((key, found.tags), SlowRate())
        rate.record(value, now_ms)
        bound = float("inf") if found.bound is None else found.bound
        throttle_ms = min(rate.throttle_ms(now_ms, bound), CAP_MS[key])
        if throttle_ms:
            self._decide(key, found, throttle_ms, value, *rate.measure(now_ms))

    def take_back(self, key: str, value: float) -> None:
        """Q-13."""
        if self._used.ever[key]:
            found = self._quotas.identity(key, self._used, self._client_id)
            self._used.rates[key, found.tags].record(-value, self._now_ms)

    def mutate(self, partitions: int, strict: bool, result: Any) -> None:
        """Pay for one topic, and look whether it was refused or not."""
        used = self._quotas.controller
        is_refused = result.error_code == E.THROTTLING_QUOTA_EXCEEDED
        if not used.ever[MUTATION]:
            assert not is_refused, f"Q-18: {result}"
            return
        found = self._quotas.identity(MUTATION, used, self._client_id)
        used.touch(MUTATION, found.tags, self._now_ms)
        bucket = used.buckets.setdefault(found.tags, SlowBucket())
        bound = JAVA_LONG_MAX if found.bound is None else found.bound
        throttle_ms = bucket.take(partitions, self._now_ms, bound, strict)
        self._mutated += partitions
        assert is_refused == (strict and throttle_ms is not None), f"Q-18: {bucket.tokens} tokens, {result}"
        if throttle_ms:
            self._decide(MUTATION, found, throttle_ms, self._mutated, bucket.tokens, ALL_WINDOWS_MS)

    def _decide(self, key: str, found: Identity, throttle_ms: int, value: float, rate: float, window_ms: int) -> None:
        assert found.entity is not None and found.bound is not None
        self._found[key] = Decision(
            self._now_ms,
            *self._who,
            throttle_ms,
            NAMES[key],
            found.tags,
            found.entity,
            found.bound,
            value,
            rate,
            window_ms,
        )

    def over(self) -> int:
        """All is counted: who is to blame, for how long."""
        if not self._found:
            return 0
        key, decision = max(self._found.items(), key=lambda one: (one[1].throttle_ms, one[0] == REQUEST))
        if key == MUTATION:
            decision = decision._replace(value=self._mutated)  # all that the request asked for
        else:
            throttles = self._used.throttles.setdefault((key, decision.tags), Throttles())
            throttles.add(decision.throttle_ms, decision.at_ms)
        self._quotas.decisions.append(decision)
        self._quotas.throttles[decision.quota] += 1
        return decision.throttle_ms


def _entity(entity: Any) -> Entity:
    """A broker's entity, whose default is ""."""
    user, client_id = (DEFAULT if name == "" else name for name in (entity.user, entity.client_id))
    return user, client_id
