"""Quota arithmetic compared with Kafka's own classes: equal results, to the last bit of a double, for equal random events.

Rates, windows and tokens are compared with `Sensor`, `Rate`, `SampledStat`, `TokenBucket` and `QuotaUtils`; entities, precedence and
changed quotas with `ClientQuotaManager`, `ControllerMutationQuotaManager` and `ConnectionQuotas` of the 3.9.1 broker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, kafka_jars
from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.client_quotas import ClientQuotas
from kafkaproto.broker.quota.connection_quotas import ConnectionQuotas
from kafkaproto.broker.quota.entities import QuotaEntity
from kafkaproto.broker.quota.mutations import MutationQuotas
from kafkaproto.broker.quota.store import ClientQuotaStore, FilterComponent, QuotaAlteration, QuotaOp
from kafkaproto.broker.quota.token_bucket import TokenBucket, refill_ms
from kafkaproto.broker.quota.windows import SampledRate, throttle_ms
from kafkaproto.broker.runtime.timers import Timers
from tests.support.oracle.quotas import QuotaOracle

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

JAVA_LONG_MAX = 2**63 - 1
START_MS = 1_700_000_000_000
USERS = ("alice", "bob", "a b/ü")
CLIENTS = ("c1", "c2", "c3")


@pytest.fixture(scope="module")
def quotas() -> Iterator[QuotaOracle]:
    with QuotaOracle(kafka_jars(KAFKA_VERSION)) as process:
        yield process


def later(rng: Random, window_ms: int, samples: int) -> int:
    """Return a time step: random steps of all relevant sizes, and exact window boundaries."""
    kind = rng.random()
    if kind < 0.25:
        return 0
    if kind < 0.7:
        return rng.randrange(1 + window_ms // 3)
    if kind < 0.85:
        return rng.choice((window_ms - 1, window_ms, window_ms + 1))
    if kind < 0.95:
        return rng.randrange(3 * window_ms)
    return rng.choice((samples * window_ms - 1, samples * window_ms, rng.randrange(3 * samples * window_ms)))


def amount(rng: Random, bound: float) -> float:
    kind = rng.random()
    if kind < 0.1:
        return 0.0
    if kind < 0.2:
        return -rng.randrange(1000) / 7
    if kind < 0.6:
        return float(rng.randrange(1, 1_000_000))
    return rng.random() * bound * rng.choice((0.1, 1, 15))


@pytest.mark.rule("Q-6")
@pytest.mark.parametrize("seed", range(24))
def test_sampled_rates_and_throttle_times_equal_those_of_kafka_sensors(quotas: QuotaOracle, seed: int) -> None:
    rng = Random(seed)
    samples, window_ms = rng.choice(((11, 1000), (11, 1000), (2, 1000), (1, 1000), (3, 30_000), (5, 7)))
    bound, now_ms, steps = 500.0, START_MS, []
    for _ in range(2500):
        now_ms += later(rng, window_ms, samples)
        if rng.random() < 0.02:
            bound = rng.choice((0.01, 1.0, 12.3, 500.0, 1024.0, 1e6, float(2**53), rng.random() * 5000))
        steps.append((now_ms, amount(rng, bound), bound))
    ours, throttled = SampledRate(samples, window_ms), 0
    expected_rates = quotas.rates(samples, window_ms, window_ms, steps)
    for (at_ms, value, limit), (rate, window, wait_ms, capped_ms) in zip(steps, expected_rates, strict=True):
        assert min(ours.record_and_throttle(value, at_ms, limit), JAVA_LONG_MAX) == wait_ms
        measured = ours.measure(at_ms)
        assert (measured.hex(), ours.measured_window_ms(at_ms)) == (float(rate).hex(), window)
        assert min(throttle_ms(measured, limit, int(window)), JAVA_LONG_MAX) == wait_ms
        assert min(throttle_ms(measured, limit, int(window)), window_ms) == capped_ms
        throttled += wait_ms > 0
    assert 100 < throttled < 2490


@pytest.mark.rule("Q-18")
@pytest.mark.parametrize("seed", range(16))
def test_token_bucket_and_throttle_times_equal_those_of_kafka(quotas: QuotaOracle, seed: int) -> None:
    rng = Random(seed)
    samples, window_ms = rng.choice(((11, 1000), (11, 1000), (2, 1000), (7, 333)))
    bound, now_ms, steps = 2.0, START_MS, []
    for _ in range(2000):
        now_ms += later(rng, window_ms, samples)
        if rng.random() < 0.02:
            bound = rng.choice((0.1, 1.0, 2.0, 3.3, 1000.0, float(2**63 - 1), rng.random() * 20))
        value = rng.choice((0, 1, 2, 3, 10, rng.random(), bound * rng.random() * 20 if bound < 1e6 else 5))
        steps.append((now_ms, value, bound, rng.random() < 0.5))
    ours, throttled = TokenBucket(samples, window_ms), 0
    for (at_ms, value, limit, strict), (tokens, wait_ms) in zip(
        steps, quotas.tokens(samples, window_ms, steps), strict=True
    ):
        if strict and ours.measure(limit, at_ms) < 0:
            assert refill_ms(ours.tokens, limit) == wait_ms
        else:
            after = ours.record(value, limit, at_ms)
            assert (-1 if strict or after >= 0 else refill_ms(after, limit)) == wait_ms
        assert ours.measure(limit, at_ms).hex() == float(tokens).hex()
        throttled += wait_ms > 0
    assert 100 < throttled < 1900


def quota_step(rng: Random, store: ClientQuotaStore, key: str, values: tuple[float, ...]) -> list[Any]:
    """Set or remove the quota of a random entity here, and return the same step for Kafka.

    Only existing quotas are removed: Kafka's controller hides the removal of a missing one from its brokers, as our store does (Q-20).
    """
    while True:
        user, client = rng.choice((None, "", *USERS)), rng.choice((None, "", *CLIENTS))
        value = None if rng.random() < 0.3 else rng.choice(values)
        entity = QuotaEntity(user=user, client_id=client)
        if entity != QuotaEntity() and (value is not None or store.get(entity, key) is not None):
            store.set(entity, key, value)
            return ["quota", user, client, value]


@pytest.mark.rule("Q-8", "Q-10")
@pytest.mark.parametrize("seed", range(20))
def test_throttle_times_equal_those_of_kafka_while_quotas_change(quotas: QuotaOracle, seed: int) -> None:
    rng = Random(seed)
    kind, key = rng.choice((("Produce", "producer_byte_rate"), ("Fetch", "consumer_byte_rate")))
    samples, window_seconds = rng.choice(((11, 1), (11, 1), (3, 2)))
    store = ClientQuotaStore(lambda *change: ours.quota_changed(*change))
    ours = ClientQuotas(store, "kafka", samples, window_seconds * 1000)
    manager = ours.produce if kind == "Produce" else ours.fetch
    now_ms, steps, expected = START_MS, [], []
    for n in range(2500):
        if n > 20 and rng.random() < 0.04:
            steps.append(quota_step(rng, store, key, (500, 1000, 2000, 3000, 100_000)))
            continue
        now_ms += later(rng, window_seconds * 250, samples)
        user, client, value = rng.choice(USERS), rng.choice((*CLIENTS, "")), float(rng.randrange(3000))
        if rng.random() < 0.05:
            manager.unrecord(user, client, value, now_ms)
            steps.append(["unrecord", now_ms, user, client, value])
        else:
            expected.append(manager.record(user, client, value, now_ms))
            steps.append(["record", now_ms, user, client, value])
    assert quotas.client_quotas(samples, window_seconds, kind, steps) == expected
    assert 100 < sum(wait_ms > 0 for wait_ms in expected) < 2400


@pytest.mark.rule("Q-18")
@pytest.mark.parametrize("seed", range(12))
def test_controller_mutation_quota_rejects_and_throttles_the_same_requests_as_kafka(
    quotas: QuotaOracle, seed: int
) -> None:
    rng = Random(seed)
    samples, window_seconds = rng.choice(((11, 1), (11, 1), (3, 2)))
    store = ClientQuotaStore(lambda *change: ours.quota_changed(*change))
    ours = MutationQuotas(store, "kafka", Timers(), samples, window_seconds * 1000)
    now_ms, steps, expected = START_MS, [], []
    for n in range(2000):
        if n > 20 and rng.random() < 0.04:
            steps.append(quota_step(rng, store, "controller_mutation_rate", (0.5, 1, 2.5, 10)))
            continue
        now_ms += later(rng, window_seconds * 250, samples)
        user, client = rng.choice(USERS), rng.choice((*CLIENTS, ""))
        partitions, strict = rng.randrange(1, 6), rng.random() < 0.7
        charge, refused = ours.begin(user, client, strict, now_ms), False
        try:
            charge.take(partitions)
        except KafkaError:
            refused = True
        expected.append([refused, charge.throttle_ms])
        steps.append(["record", now_ms, user, client, partitions, strict])
    assert quotas.mutation_quotas(samples, window_seconds, steps) == expected
    assert 30 < sum(refused for refused, _ in expected) < 1900


@pytest.mark.rule("W-13")
@pytest.mark.parametrize("seed", range(12))
def test_ip_connection_throttles_equal_those_of_kafka(quotas: QuotaOracle, seed: int) -> None:
    rng = Random(seed)
    samples, window_seconds = rng.choice(((2, 1), (11, 1), (3, 2)))
    store = ClientQuotaStore(lambda *change: ours.quota_changed(*change))
    config = {"quota.window.num": samples, "quota.window.size.seconds": window_seconds}
    ours = ConnectionQuotas(ClusterConfig(config).for_broker(0), store)
    ours.add_listener("PLAINTEXT")
    now_ms, steps, expected = START_MS, [], []
    addresses = ("10.0.0.1", "10.0.0.2", "::1")
    for n in range(1500):
        if n == 0 or rng.random() < 0.02:
            address = rng.choice((None, *addresses)) if n else None
            value = rng.randrange(1, 8) if n == 0 or rng.random() < 0.7 else None
            store.set(QuotaEntity(ip=address or ""), "connection_creation_rate", value)
            steps.append(["quota", address, value])
            continue
        now_ms += later(rng, window_seconds * 200, samples)
        address = rng.choice(addresses)
        assert ours.arrived("PLAINTEXT", now_ms) == 0
        expected.append(ours.address_throttle_ms("PLAINTEXT", address, now_ms))
        steps.append(["connect", now_ms, address])
    assert quotas.connection_quotas(samples, window_seconds, steps) == expected
    assert 20 < sum(wait_ms > 0 for wait_ms in expected) < 1480


KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
VALUES = (
    *(1.0, 10_000.0, 12.5, 0.3, 0.0, -1.0, 1e-7, 5.0000005, 5.000002, 4.9999995, 4.999998),
    *(2.0**31 - 1, 2.0**31, 2.0**53, 2.0**63, 2.0**64, 1e300),
)
Entity = list[tuple[str, str | None]]


def random_entity(rng: Random) -> Entity:
    """Return a random entity, usually a valid one with one of few names, so that entities repeat."""
    kind = rng.random()
    names = (None, "a", "b", "<default>")
    if kind < 0.3:
        return [("user", rng.choice(names)), ("client-id", rng.choice(names))]
    if kind < 0.5:
        return [("user", rng.choice(names))]
    if kind < 0.7:
        return [("client-id", rng.choice(names))]
    if kind < 0.85:
        return [("ip", rng.choice((None, "1.2.3.4", "::1", "localhost", "no address at all")))]
    odd = (
        ("user", "a"),
        ("user", ""),
        ("ip", "1.2.3.4"),
        ("ip", ""),
        ("weather", "rain"),
        ("", "a"),
        ("client-id", ""),
    )
    return [rng.choice(odd) for _ in range(rng.randrange(3))]


def random_ops(rng: Random, entity: Entity) -> list[QuotaOp]:
    keys = ("connection_creation_rate",) if dict(entity).keys() == {"ip"} and rng.random() < 0.9 else KEYS
    picked = [
        rng.choice(keys if rng.random() < 0.95 else ("speed", "connection_creation_rate"))
        for _ in range(rng.randrange(4))
    ]
    return [QuotaOp(key, rng.choice(VALUES), rng.random() < 0.3) for key in picked]


def random_filter(rng: Random) -> list[FilterComponent]:
    types = ("user", "client-id", "ip") if rng.random() < 0.9 else ("user", "", "weather")
    chosen = [rng.choice(types) for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3)))]
    matches = ("a", "b", "<default>", "1.2.3.4", "")
    components = []
    for kind in chosen:
        match_type = rng.choice((0, 0, 1, 2)) if rng.random() < 0.95 else 3
        right = rng.choice(matches) if match_type == 0 else None
        components.append(FilterComponent(kind, match_type, right if rng.random() < 0.95 else rng.choice((None, "a"))))
    return components


def in_any_order(entries: Any) -> list[str]:
    return sorted(json.dumps([dict(sorted(entity.items())), other], sort_keys=True) for entity, other in entries)


@pytest.mark.rule("Q-19", "Q-20", "Q-21")
@pytest.mark.parametrize("seed", range(30))
def test_random_client_quota_requests_get_the_same_results_as_from_kafka_controller(
    quotas: QuotaOracle, seed: int
) -> None:
    rng, store, steps, expected = Random(seed), ClientQuotaStore(), [], []
    for _ in range(200):
        if rng.random() < 0.5:
            alterations = []
            for _ in range(rng.randrange(1, 5)):
                entity = random_entity(rng)
                alterations.append(QuotaAlteration(entity, random_ops(rng, entity)))
            validate_only = rng.random() < 0.2
            results = store.alter(alterations, validate_only)
            expected.append([[dict(r.entity), int(r.error_code)] for r in results])
            entries = [
                {
                    "entity": [{"entityType": kind, "entityName": name} for kind, name in entity],
                    "ops": [op._asdict() for op in ops],
                }
                for entity, ops in alterations
            ]
            steps.append(["alter", {"entries": entries, "validateOnly": validate_only}])
        else:
            components, strict = random_filter(rng), rng.random() < 0.5
            try:
                described = [[dict(e.components()), dict(v)] for e, v in store.describe(components, strict)]
                expected.append([0, described])
            except KafkaError as error:
                expected.append([int(error.error_code), []])
            components_json = [
                {"entityType": c.entity_type, "matchType": c.match_type, "match": c.match} for c in components
            ]
            steps.append(["describe", {"components": components_json, "strict": strict}])
    for step, theirs, ours in zip(steps, quotas.entities(steps), expected, strict=True):
        if step[0] == "alter":
            assert in_any_order(ours) == in_any_order(theirs), step
        else:
            assert ours[0] == theirs[0], step
            assert in_any_order(ours[1]) == in_any_order(theirs[1]), step
