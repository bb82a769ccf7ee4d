"""Tests of DescribeClientQuotas and AlterClientQuotas over a socket (KIP-546, Q-19 to Q-21)."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import UNTIL_KNOWN_MS, Entity, alter_quotas, limited, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kafkaproto.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

PRODUCE, FETCH, PERCENT = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
USER, CLIENT, IP = "user", "client-id", "ip"
EXACT, DEFAULT, ANY = 0, 1, 2


def described(
    subject: Subject, *components: tuple[str, int, str | None], strict: bool = False
) -> tuple[int, list[dict[str, str | None]] | None]:
    """Send DescribeClientQuotas and return (error, entities). components: filter components as (entity type, kind of match, name).

    Each entity is a dict of types to names. entities: None if the response has no list. strict: whether entities with other types than those of the
    components are excluded.
    """
    request = DescribeClientQuotasRequest([ComponentData(*component) for component in components], strict)
    answer = subject.ask_once(request, 1)
    if answer.entries is None:
        return answer.error_code, None
    return answer.error_code, [{e.entity_type: e.entity_name for e in entry.entity} for entry in answer.entries]


@pytest.mark.rule("Q-19", "Q-21")
def test_describe_client_quotas_returns_as_many_entities_as_kafka_for_each_filter(subject: Subject) -> None:
    """The test sets quotas of 11 users and clients and of two IP addresses, and counts the entities that match each filter.

    Corresponds to Kafka's test `ClientQuotasRequestTest`.
    """
    tag = subject.new_name("q")
    u1, u2, u3, c1, c2, c3 = (f"{tag}-{name}" for name in ("user-1", "user-2", "user-3", "client-1", "client-2", "c"))
    entities: list[Entity] = [
        {USER: u1, CLIENT: c1},
        {USER: u1, CLIENT: c2},
        {USER: u3, CLIENT: "<default>" + tag},
        {USER: None, CLIENT: c1},
        {USER: None, CLIENT: c2},
        {USER: u1, CLIENT: None},
        {USER: u2, CLIENT: None},
        {USER: u1},
        {USER: u2},
        {USER: u3},
        {CLIENT: c3},
    ]
    ips: list[Entity] = [{IP: "1.2.3.4"}, {IP: "5.6.7.8"}]
    mine = [frozenset(entity.items()) for entity in (*entities, *ips)]
    changes = [(entity, {FETCH: 123_456.0}) for entity in entities] + [
        (ip, {"connection_creation_rate": 77.0}) for ip in ips
    ]

    def count(*components: tuple[str, int, str | None], strict: bool = False) -> int:
        error, result = described(subject, *components, strict=strict)
        assert error == 0 and result is not None
        return sum(frozenset(entity.items()) in mine for entity in result)

    with limited(subject, *changes):
        assert count((USER, EXACT, u1)) == 4
        assert count((USER, EXACT, u1), strict=True) == 1
        assert count((USER, EXACT, u2), strict=True) == 1
        assert count((CLIENT, EXACT, c2)) == 2
        assert count((CLIENT, EXACT, c1), strict=True) == 0
        assert count((USER, DEFAULT, None)) == 2
        assert count((USER, ANY, None)) == 10
        assert count((USER, ANY, None), strict=True) == 3
        assert count((CLIENT, ANY, None)) == 8
        assert count((CLIENT, ANY, None), strict=True) == 1
        assert (
            count((USER, EXACT, u1), (CLIENT, EXACT, c2))
            == count((USER, EXACT, u1), (CLIENT, EXACT, c2), strict=True)
            == 1
        )
        assert count((IP, ANY, None)) == count((IP, ANY, None), strict=True) == 2
        assert count((IP, EXACT, "1.2.3.4")) == 1
        assert count() == 13
        assert count(strict=True) == 0
        assert count((USER, EXACT, tag)) == 0
    wait_until(subject, lambda: count() == 0, "entities without values do not exist")


@pytest.mark.rule("Q-21")
@pytest.mark.parametrize(
    ("components", "error_code"),
    [
        ([("", EXACT, "x")], 42),
        ([(USER, EXACT, "a"), (USER, EXACT, "b")], 42),
        ([(IP, ANY, None), (USER, ANY, None)], 42),
        ([(USER, EXACT, None)], 42),
        ([(USER, DEFAULT, "x")], 42),
        ([(USER, ANY, "x")], 42),
        ([(USER, 7, None)], 42),
        ([("user-group", EXACT, "x")], 35),
    ],
)
def test_describe_client_quotas_rejects_contradictory_filters(
    subject: Subject, components: list[tuple[str, int, str | None]], error_code: int
) -> None:
    assert described(subject, *components) == (error_code, None)


@pytest.mark.rule("Q-20")
@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ({}, {PRODUCE: 1.0}),
        ({"group": "g"}, {PRODUCE: 1.0}),
        ({USER: ""}, {PRODUCE: 1.0}),
        ({CLIENT: ""}, {PRODUCE: 1.0}),
        ({USER: "u", IP: "1.2.3.4"}, {PRODUCE: 1.0}),
        ({IP: "not an address!"}, {"connection_creation_rate": 5.0}),
        ({IP: "1.2.3.4"}, {PRODUCE: 1.0}),
        ({USER: "u"}, {"connection_creation_rate": 5.0}),
        ({USER: "u"}, {"bytes": 1.0}),
        ({USER: "u"}, {PRODUCE: 0.0}),
        ({USER: "u"}, {PRODUCE: -1.0}),
        ({USER: "u"}, {PRODUCE: 1.5}),
        ({USER: "u"}, {PERCENT: 0.0}),
    ],
    ids=str,
)
def test_invalid_quota_alteration_is_rejected_and_other_entities_are_altered(
    subject: Subject, entity: Entity, values: dict[str, float | None]
) -> None:
    good: Entity = {CLIENT: subject.new_name("good")}
    answers = alter_quotas(subject, (entity, values), (good, {PRODUCE: 5000.0}))
    by_entity = {tuple((e.entity_type, e.entity_name) for e in a.entity): a for a in answers}
    assert by_entity[tuple(entity.items())].error_code == ErrorCode.INVALID_REQUEST
    assert by_entity[tuple(good.items())].error_code == 0
    subject.pass_ms(UNTIL_KNOWN_MS)
    assert described(subject, (CLIENT, EXACT, good[CLIENT])) == (0, [good])
    alter_quotas(subject, (good, {PRODUCE: None}))


@pytest.mark.rule("Q-20")
def test_invalid_and_validate_only_quota_alterations_change_no_quota(subject: Subject) -> None:
    name = subject.new_name("v")
    entity: Entity = {CLIENT: name}
    twice = AlterClientQuotasRequestEntryData(
        [AlterClientQuotasRequestEntityData(CLIENT, name)], [OpData(PRODUCE, 1.0), OpData(PRODUCE, 2.0)]
    )
    assert subject.ask_once(AlterClientQuotasRequest([twice]), 1).entries[0].error_code == ErrorCode.INVALID_REQUEST
    assert alter_quotas(subject, (entity, {PRODUCE: None}))[0].error_code == 0
    assert alter_quotas(subject, (entity, {PRODUCE: 10.0}), validate_only=True)[0].error_code == 0
    assert (
        alter_quotas(subject, (entity, {PRODUCE: 10.5}), validate_only=True)[0].error_code == ErrorCode.INVALID_REQUEST
    )
    subject.pass_ms(UNTIL_KNOWN_MS)
    assert described(subject, (CLIENT, EXACT, name)) == (0, [])
