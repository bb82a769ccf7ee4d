"""The client quota store (KIP-546): alterations and filters, with the entities and counts of Kafka's ClientQuotasRequestTest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.addresses import parse_address
from kafkaproto.broker.quota.entities import DEFAULT, QuotaEntity, parse_entity
from kafkaproto.broker.quota.store import (
    Change,
    ClientQuotaStore,
    FilterComponent,
    MatchType,
    QuotaAlteration,
    QuotaOp,
    apply_static_quotas,
)
from kafkaproto.error_codes import ErrorCode
from tests.support.broker.processes import Processes
from tests.support.wire import limit

PRODUCE, CONSUME, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS = "controller_mutation_rate"
ALICE = (("user", "alice"), ("client-id", "c"))
ALICE_ENTITY = QuotaEntity(user="alice", client_id="c")


def alter(store: ClientQuotaStore, entity: object, *ops: QuotaOp, validate_only: bool = False) -> int:
    results = store.alter([QuotaAlteration(tuple(entity), ops)], validate_only)  # type: ignore[arg-type]
    assert len(results) == 1
    assert (results[0].error_message is None) == (results[0].error_code == 0)
    return int(results[0].error_code)


def values(store: ClientQuotaStore, entity: QuotaEntity = ALICE_ENTITY) -> dict[str, float]:
    return dict(next((v for e, v in store.describe([], False) if e == entity), {}))


@pytest.mark.rule("Q-20")
def test_quota_operations_add_change_and_remove_values_of_an_entity() -> None:
    """Kafka's ClientQuotasRequestTest.testAlterClientQuotasRequest."""
    store = ClientQuotaStore()
    steps = [
        ([QuotaOp(PRODUCE, 10000), QuotaOp(CONSUME, 20000)], {PRODUCE: 10000, CONSUME: 20000}),
        ([QuotaOp(PRODUCE, 15000)], {PRODUCE: 15000, CONSUME: 20000}),
        ([QuotaOp(PRODUCE, 0, True)], {CONSUME: 20000}),
        ([QuotaOp(CONSUME, 0, True)], {}),
        ([QuotaOp(PRODUCE, 5000)], {PRODUCE: 5000}),
        (
            [QuotaOp(PRODUCE, 20000), QuotaOp(CONSUME, 0, True), QuotaOp(REQUEST, 12.3)],
            {PRODUCE: 20000, REQUEST: 12.3},
        ),
    ]
    for ops, expected in steps:
        assert alter(store, ALICE, *ops) == 0
        assert values(store) == expected


@pytest.mark.rule("Q-20")
def test_validate_only_quota_alteration_returns_results_but_changes_nothing() -> None:
    store = ClientQuotaStore()
    assert alter(store, ALICE, QuotaOp(PRODUCE, 20000), QuotaOp(REQUEST, 23.45), validate_only=True) == 0
    assert alter(store, ALICE, QuotaOp(PRODUCE, -1), validate_only=True) == ErrorCode.INVALID_REQUEST
    assert store.describe([], False) == []


@pytest.mark.rule("Q-20")
@pytest.mark.parametrize(
    ("entity", "op"),
    [
        ((), QuotaOp(PRODUCE, 1)),
        ((("weather", "rain"),), QuotaOp(PRODUCE, 1)),
        ((("user", ""),), QuotaOp(PRODUCE, 1)),
        ((("ip", "1.2.3.4"), ("user", "u")), QuotaOp("connection_creation_rate", 1)),
        ((("ip", "not.a.host"),), QuotaOp("connection_creation_rate", 1)),
        ((("ip", "1.2.3.4"),), QuotaOp(PRODUCE, 1)),
        ((("ip", "1.2.3.4"),), QuotaOp("connection_creation_rate", 2**31)),
        ((("user", "u"),), QuotaOp("connection_creation_rate", 1)),
        ((("user", "u"),), QuotaOp("bad", 1)),
        ((("user", "u"),), QuotaOp(PRODUCE, 0)),
        ((("user", "u"),), QuotaOp(PRODUCE, -1)),
        ((("user", "u"),), QuotaOp(PRODUCE, 1.5)),
        ((("user", "u"),), QuotaOp(PRODUCE, float("inf"))),
        ((("user", "u"),), QuotaOp(REQUEST, float("-inf"))),
        ((("user", "u"),), QuotaOp(PRODUCE, 1e19)),
    ],
)
def test_invalid_quota_alteration_gets_error_invalid_request_and_stores_no_quota(
    entity: tuple[tuple[str, str]], op: QuotaOp
) -> None:
    store = ClientQuotaStore()
    assert alter(store, entity, op) == ErrorCode.INVALID_REQUEST
    assert store.describe([], False) == []


@pytest.mark.rule("Q-22")
def test_nan_and_infinity_quotas_are_unchanged_by_a_restart_and_throttle_no_client(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    not_a_number = dict.fromkeys((PRODUCE, CONSUME, REQUEST, MUTATIONS), math.nan)
    for _ in range(2):
        limit(processes.cluster, **not_a_number)
        cluster = processes.crash_and_restart()
        stored = cluster.state.quota_store.all()
        assert len(stored) == 4 and all(map(math.isnan, stored.values()))
        quotas = cluster.state.nodes[0].quotas
        for manager in (quotas.produce, quotas.fetch, quotas.request):
            assert manager.record("ANONYMOUS", "test", 1e9, cluster.now_ms) == 0
        assert quotas.fetch.max_bytes_in_window("ANONYMOUS", "test") == 0
        for strict in (False, True):
            assert not cluster.state.mutations.take("ANONYMOUS", "test", 10**6, strict, cluster.now_ms)
    limit(cluster, **{REQUEST: math.inf, MUTATIONS: math.inf})
    assert quotas.request.record("ANONYMOUS", "test", 1e9, cluster.now_ms) == 0
    assert cluster.state.mutations.take("ANONYMOUS", "test", 10**6, False, cluster.now_ms) is None
    assert processes.crash_and_restart().state.quota_store.get(QuotaEntity(client_id="test"), REQUEST) == math.inf


@pytest.mark.rule("Q-22")
def test_ip_quotas_accept_short_ipv4_and_bracketed_ipv6_but_no_malformed_address() -> None:
    """The expected addresses are those of Java 17; None stands for text that Java rejects or looks up as a host name."""
    expected = {
        "1.2.3": "1.2.0.3",
        "1": "0.0.0.1",
        "010.0.0.1": "10.0.0.1",
        "4294967295": "255.255.255.255",
        "4294967296": None,
        "1.16777215": "1.255.255.255",
        "1.16777216": None,
        "1.2.65536": None,
        "256.1.1.1": None,
        "1.2.3.4.": None,
        "1..2": None,
        "0x7f.1": None,
        "0000000000000001": None,
        "\N{ARABIC-INDIC DIGIT THREE}": None,
        "[::1]": "::1",
        "::00001": "::1",
        "::1%1": "::1",
        "::1%": None,
        "[::1": None,
        "[1.2.3.4]": None,
        "1.2.3.4%1": None,
        "::ffff:010.0.0.1": "10.0.0.1",
        "::ffff:1.2.3": None,
        "::1.2.3.4": "::102:304",
        "1::2::3": None,
        "ab": None,
    }
    parsed = {text: parse_address(text) for text in expected}
    assert {text: None if address is None else str(address) for text, address in parsed.items()} == expected


@pytest.mark.rule("Q-20")
def test_byte_rate_quota_5_0000005_is_accepted_and_5_00001_is_rejected() -> None:
    store = ClientQuotaStore()
    assert alter(store, ALICE, QuotaOp(PRODUCE, 5.0000005)) == 0
    assert alter(store, ALICE, QuotaOp(PRODUCE, 5.00001)) == ErrorCode.INVALID_REQUEST


@pytest.mark.rule("Q-20")
@pytest.mark.parametrize("keys", [(REQUEST, "connection_creation_rate"), ("connection_creation_rate", REQUEST)])
def test_error_for_two_invalid_quota_keys_names_the_same_key_in_either_order(keys: tuple[str, str]) -> None:
    [result] = ClientQuotaStore().alter([QuotaAlteration(ALICE, [QuotaOp(key, 0.0) for key in keys])], False)
    assert result.error_message == "Invalid configuration key connection_creation_rate"


@pytest.mark.rule("Q-20")
def test_entity_with_a_repeated_quota_key_is_rejected_and_other_entities_are_altered() -> None:
    store = ClientQuotaStore()
    results = store.alter(
        [
            QuotaAlteration(ALICE, [QuotaOp(PRODUCE, 5), QuotaOp(PRODUCE, 6)]),
            QuotaAlteration((("user", None),), [QuotaOp(PRODUCE, 7)]),
            QuotaAlteration((("user", "bob"),), [QuotaOp(PRODUCE, 8), QuotaOp(CONSUME, -8)]),
        ],
        False,
    )
    assert [r.error_code for r in results] == [42, 0, 42]
    assert store.describe([], False) == [(QuotaEntity(user=DEFAULT), {PRODUCE: 7})]


@pytest.mark.rule("Q-20")
def test_quota_entity_listed_twice_gets_a_single_result_with_error_invalid_request() -> None:
    store = ClientQuotaStore()
    twice = [QuotaAlteration(ALICE, [QuotaOp(PRODUCE, n)]) for n in (5, 6)]
    assert [r.error_code for r in store.alter(twice, False)] == [42]
    assert values(store) == {PRODUCE: 5}


@pytest.mark.rule("Q-20")
def test_byte_rate_quota_just_below_an_integer_or_of_2_to_the_64_is_rejected() -> None:
    store = ClientQuotaStore()
    assert [alter(store, ALICE, QuotaOp(PRODUCE, value)) for value in (5.0000009, 4.9999999, 5.1)] == [0, 42, 42]
    assert [alter(store, ALICE, QuotaOp(PRODUCE, value)) for value in (2.0**63, 2.0**64)] == [0, 42]


@pytest.mark.rule("Q-20")
def test_quota_entity_that_lists_two_users_sets_the_quota_of_the_last_user() -> None:
    store = ClientQuotaStore()
    twice = QuotaAlteration([("user", ""), *ALICE], [QuotaOp(PRODUCE, 5)])
    same = QuotaAlteration(ALICE, [QuotaOp(PRODUCE, 6)])
    assert [r.error_code for r in store.alter([twice, same], False)] == [42]
    assert values(store) == {PRODUCE: 5}


@pytest.mark.rule("Q-20")
def test_removing_a_missing_quota_succeeds_and_calls_no_change_callback() -> None:
    notified: list[tuple[QuotaEntity, str, float | None]] = []
    store = ClientQuotaStore(lambda *change: notified.append(change))
    assert alter(store, ALICE, QuotaOp(PRODUCE, 0, True)) == 0
    assert notified == []
    alter(store, ALICE, QuotaOp(PRODUCE, 5))
    alter(store, ALICE, QuotaOp(PRODUCE, 5))
    alter(store, ALICE, QuotaOp(PRODUCE, 0, True))
    assert notified == [(ALICE_ENTITY, PRODUCE, 5), (ALICE_ENTITY, PRODUCE, None)]


@pytest.mark.rule("Q-20")
def test_quota_keeps_its_old_value_if_the_change_cannot_be_persisted() -> None:
    notified: list[tuple[QuotaEntity, str, float | None]] = []
    refused: list[Change] = []

    def remember(changes: Sequence[Change]) -> None:
        if any(value == 7 for _, _, value in changes):
            refused.extend(changes)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    store = ClientQuotaStore(lambda *change: notified.append(change), remember)
    store.set(ALICE_ENTITY, PRODUCE, 5)
    with pytest.raises(KafkaError):
        store.set(ALICE_ENTITY, PRODUCE, 7)
    assert alter(store, ALICE, QuotaOp(CONSUME, 1), QuotaOp(PRODUCE, 7)) == ErrorCode.KAFKA_STORAGE_ERROR
    assert refused == [(ALICE_ENTITY, PRODUCE, 7), (ALICE_ENTITY, CONSUME, 1), (ALICE_ENTITY, PRODUCE, 7)]
    assert store.all() == {(ALICE_ENTITY, PRODUCE): 5}
    store.clear()
    assert notified == [(ALICE_ENTITY, PRODUCE, 5), (ALICE_ENTITY, PRODUCE, None)]
    assert store.describe([], False) == []


@pytest.mark.rule("Q-19")
def test_quota_of_a_user_named_default_is_not_the_quota_of_all_users() -> None:
    assert parse_entity([("user", None)]) == QuotaEntity(user=DEFAULT)
    assert parse_entity([("user", "<default>")]) == QuotaEntity(user="<default>")
    assert QuotaEntity(user=DEFAULT, client_id="c").components() == [("user", None), ("client-id", "c")]
    assert parse_entity([("ip", "::1")]).ip == "::1"


@pytest.fixture(scope="module")
def described() -> ClientQuotaStore:
    """Return a store with the 11 user and client entities and 2 IP addresses of setupDescribeClientQuotasMatchTest."""
    store = ClientQuotaStore()
    absent = object()
    for user, client, value in [
        ("user-1", "client-id-1", 50.50),
        ("user-2", "client-id-1", 51.51),
        ("user-3", "client-id-2", 52.52),
        (None, "client-id-1", 53.53),
        ("user-1", None, 54.54),
        ("user-3", None, 55.55),
        ("user-1", absent, 56.56),
        ("user-2", absent, 57.57),
        ("user-3", absent, 58.58),
        (None, absent, 59.59),
        (absent, "client-id-2", 60.60),
    ]:
        entity = [(kind, name) for kind, name in (("user", user), ("client-id", client)) if name is not absent]
        assert alter(store, entity, QuotaOp(REQUEST, value)) == 0
    for address in ("1.2.3.4", "2.3.4.5"):
        assert alter(store, [("ip", address)], QuotaOp("connection_creation_rate", 10)) == 0
    return store


def exact(kind: str, name: str) -> FilterComponent:
    return FilterComponent(kind, MatchType.EXACT, name)


def default(kind: str) -> FilterComponent:
    return FilterComponent(kind, MatchType.DEFAULT)


def any_of(kind: str) -> FilterComponent:
    return FilterComponent(kind, MatchType.ANY)


@pytest.mark.rule("Q-21")
@pytest.mark.parametrize(
    ("components", "strict", "count"),
    [
        ([exact("user", "user-1")], False, 3),
        ([exact("client-id", "client-id-2")], False, 2),
        ([default("user")], False, 2),
        ([exact("user", "user-2")], True, 1),
        ([exact("client-id", "client-id-1")], True, 0),
        ([any_of("user")], True, 4),
        ([any_of("user")], False, 10),
        ([any_of("client-id")], True, 1),
        ([any_of("client-id")], False, 7),
        ([any_of("ip")], False, 2),
        ([], False, 13),
        ([], True, 0),
        ([exact("user", "user-1"), exact("client-id", "client-id-1")], True, 1),
        ([exact("user", "user-1"), default("client-id")], True, 1),
        ([any_of("user"), any_of("client-id")], True, 6),
        ([exact("user", "<default>")], False, 0),
        ([default("ip")], False, 0),
    ],
)
def test_describe_client_quotas_returns_all_entities_that_match_each_filter(
    described: ClientQuotaStore, components: list[FilterComponent], strict: bool, count: int
) -> None:
    """The counts of Kafka's ClientQuotasRequestTest.testDescribeClientQuotas."""
    described_quotas = described.describe(components, strict)
    assert len(described_quotas) == count
    assert all(found_values for _, found_values in described_quotas)


@pytest.mark.rule("Q-21")
@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([exact("", "name")], 42),
        ([exact("user", "a"), exact("user", "b")], 42),
        ([exact("user", "a"), any_of("ip")], 42),
        ([FilterComponent("user", 3)], 42),
        ([FilterComponent("user", MatchType.EXACT)], 42),
        ([FilterComponent("user", MatchType.DEFAULT, "a")], 42),
        ([FilterComponent("user", MatchType.ANY, "a")], 42),
        ([exact("weather", "rain")], 35),
    ],
)
def test_contradictory_describe_client_quotas_filter_is_rejected(components: list[FilterComponent], code: int) -> None:
    with pytest.raises(KafkaError) as caught:
        ClientQuotaStore().describe(components, False)
    assert caught.value.error_code == code


@pytest.mark.rule("D9b")
def test_quota_producer_default_and_override_settings_set_quotas_of_client_ids() -> None:
    store = ClientQuotaStore()
    apply_static_quotas(
        store,
        {
            "quota.producer.default": "2M",
            "quota.consumer.default": str(2**63 - 1),
            "quota.producer.override": "clientA:4M,with:colon:10",
            "quota.consumer.override": None,
        },
    )
    assert dict(store.describe([], False)) == {
        QuotaEntity(client_id=DEFAULT): {PRODUCE: 2 * 1024 * 1024},
        QuotaEntity(client_id="clientA"): {PRODUCE: 4 * 1024 * 1024},
        QuotaEntity(client_id="with:colon"): {PRODUCE: 10},
    }
    assert alter(store, [("client-id", None)], QuotaOp(PRODUCE, 9)) == 0


@pytest.mark.rule("D9b")
@pytest.mark.parametrize(
    ("name", "text"),
    [("quota.producer.default", "fast"), ("quota.consumer.default", "0"), ("quota.consumer.override", "clientA")],
)
def test_error_for_an_invalid_static_quota_setting_names_the_setting(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=name):
        apply_static_quotas(ClientQuotaStore(), {name: text})


@pytest.mark.rule("Q-20")
@pytest.mark.parametrize("value", ["5", True, 10**400, [1]])
def test_quota_value_that_is_not_a_number_is_rejected_with_a_message(value: Any) -> None:
    store = ClientQuotaStore()
    with pytest.raises(KafkaError, match="must be a number") as caught:
        store.set(QuotaEntity(client_id="x"), "producer_byte_rate", value)
    assert caught.value.error_code == 42 and store.all() == {}
