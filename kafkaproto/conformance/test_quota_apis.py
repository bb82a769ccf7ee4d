"""Tests of DescribeClientQuotas and AlterClientQuotas over a socket (KIP-546, Q-19 to Q-21)."""

from __future__ import annotations

import math

import pytest

from kafkaproto.conformance.scene import UNTIL_KNOWN_MS, Entity, alter_quotas, limited, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, fetch, flat, produce, produced
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
    """Send DescribeClientQuotas and return (error, entities); entities is None if the response has no list.

    Each entity is a dict of entity types, such as "user", to names; None is the name of the default entity. components: (entity type, match type,
    name) of each filter component; the match type is 0 for the given name, 1 for the default entity, 2 for any. strict: whether entities with other
    types than those of the components are excluded.
    """
    request = DescribeClientQuotasRequest([ComponentData(*component) for component in components], strict)
    response = subject.ask_once(request, 1)
    if response.entries is None:
        return response.error_code, None
    return response.error_code, [{e.entity_type: e.entity_name for e in entry.entity} for entry in response.entries]


@pytest.mark.rule("Q-19", "Q-21")
def test_describe_client_quotas_returns_only_the_entities_that_match_the_filter(subject: Subject) -> None:
    """The test sets quotas for 11 combinations of user and client id and for two IP addresses, and counts the entities that match each filter.

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
    own_entities = [frozenset(entity.items()) for entity in (*entities, *ips)]
    changes = [(entity, {FETCH: 123_456.0}) for entity in entities] + [
        (ip, {"connection_creation_rate": 77.0}) for ip in ips
    ]

    def count(*components: tuple[str, int, str | None], strict: bool = False) -> int:
        error, result = described(subject, *components, strict=strict)
        assert error == 0 and result is not None
        return sum(frozenset(entity.items()) in own_entities for entity in result)

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
    wait_until(
        subject,
        lambda: count() == 0,
        "DescribeClientQuotas no longer returns the entities whose quotas the test has removed",
    )


COMBINATION = (
    "Invalid entity filter component combination. IP filter component should not be used with user or clientId "
    "filter component."
)


@pytest.mark.rule("Q-21")
@pytest.mark.parametrize(
    ("components", "error_code", "message"),
    [
        ([("", EXACT, "x")], 42, "Invalid empty entity type."),
        ([(USER, EXACT, "a"), (USER, ANY, None)], 42, "Entity type user cannot appear more than once in the filter."),
        ([(IP, ANY, None), (USER, ANY, None)], 42, COMBINATION),
        ([(CLIENT, EXACT, "a"), (IP, DEFAULT, None)], 42, COMBINATION),
        ([(USER, EXACT, None)], 42, "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ([(USER, DEFAULT, "x")], 42, "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        ([(USER, ANY, "x")], 42, "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        ([(USER, 7, None)], 42, "Unknown match type 7"),
        ([("user-group", EXACT, "x")], 35, "Unsupported entity type user-group"),
    ],
)
def test_describe_client_quotas_rejects_contradictory_filters(
    subject: Subject, components: list[tuple[str, int, str | None]], error_code: int, message: str
) -> None:
    request = DescribeClientQuotasRequest([ComponentData(*component) for component in components], False)
    response = subject.ask_once(request, 1)
    assert (response.error_code, response.error_message, response.entries) == (error_code, message, None)


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
    valid_entity: Entity = {CLIENT: subject.new_name("good")}
    results = alter_quotas(subject, (entity, values), (valid_entity, {PRODUCE: 5000.0}))
    by_entity = {tuple((e.entity_type, e.entity_name) for e in a.entity): a for a in results}
    assert by_entity[tuple(entity.items())].error_code == ErrorCode.INVALID_REQUEST
    assert by_entity[tuple(valid_entity.items())].error_code == 0
    subject.pass_ms(UNTIL_KNOWN_MS)
    assert described(subject, (CLIENT, EXACT, valid_entity[CLIENT])) == (0, [valid_entity])
    alter_quotas(subject, (valid_entity, {PRODUCE: None}))


@pytest.mark.rule("Q-20")
def test_empty_and_repeated_quota_entities_are_rejected_with_the_message_of_kafka(subject: Subject) -> None:
    def errors(*entries: tuple[list[tuple[str, str | None]], list[str]]) -> list[tuple[int, str | None]]:
        """Validate changes of quotas with AlterClientQuotas, and return (error code, message) of each result.

        entries: ([(entity type, name)], names of quotas to set) of each entity. The name None stands for the default entity.
        """
        requested = [
            AlterClientQuotasRequestEntryData(
                [AlterClientQuotasRequestEntityData(*component) for component in entity],
                [OpData(key, 5.0) for key in keys],
            )
            for entity, keys in entries
        ]
        results = subject.ask_once(AlterClientQuotasRequest(requested, True), 1).entries
        return [(result.error_code, result.error_message) for result in results]

    def duplicate(entries: str) -> list[tuple[int, str | None]]:
        return [(42, f"Ignoring duplicate entity ClientQuotaEntity(entries={{{entries}}})")]

    assert errors(([], [PRODUCE])) == [(42, "Invalid empty client quota entity")]
    of_two = [(42, "Invalid configuration key connection_creation_rate")]
    for keys in (["nothing", "connection_creation_rate"], ["connection_creation_rate", "nothing"]):
        assert errors(([(USER, "u")], keys)) == of_two
    assert errors(([(USER, "u")], [PRODUCE, PRODUCE])) == duplicate("user=u")
    assert errors(([(USER, "u")], [PRODUCE]), ([(USER, "u")], [FETCH])) == duplicate("user=u")
    both: list[tuple[str, str | None]] = [(USER, "u"), (CLIENT, None)]
    assert errors((both, [PRODUCE]), (both[::-1], [PRODUCE])) == duplicate("client-id=null, user=u")


@pytest.mark.rule("Q-20")
def test_quota_result_of_an_entity_that_lists_two_users_contains_only_the_last_user(subject: Subject) -> None:
    names = [subject.new_name("user") for _ in range(2)]
    entity = [AlterClientQuotasRequestEntityData(USER, name) for name in names]
    for value, error in ((5.0, 0), (-1.0, int(ErrorCode.INVALID_REQUEST))):
        entry = AlterClientQuotasRequestEntryData(entity, [OpData(PRODUCE, value)])
        [result] = subject.ask_once(AlterClientQuotasRequest([entry], True), 1).entries
        assert result.error_code == error
        assert [(e.entity_type, e.entity_name) for e in result.entity] == [(USER, names[-1])]


@pytest.mark.rule("Q-22")
def test_nan_and_infinite_quotas_are_stored_and_throttle_no_client(subject: Subject) -> None:
    client_id = subject.new_name("nan")
    entity: Entity = {CLIENT: client_id}
    topic = new_topic(subject)
    values = {PRODUCE: math.nan, FETCH: math.nan, PERCENT: math.inf, "controller_mutation_rate": math.nan}
    [infinite] = alter_quotas(subject, (entity, {PRODUCE: math.inf}))
    assert (infinite.error_code, infinite.error_message) == (
        42,
        f"Proposed value for {PRODUCE} is too large for a LONG.",
    )
    with limited(subject, (entity, values)):
        request = DescribeClientQuotasRequest([ComponentData(CLIENT, EXACT, client_id)], True)
        [entry] = subject.ask_once(request, 1).entries
        assert {v.key: str(v.value) for v in entry.values} == {key: str(value) for key, value in values.items()}
        connection = topic.connect(client_id=client_id)
        for _ in range(2):
            response = subject.ask(connection, produce(topic.name, batch(b"v" * 1000)), 9)
            assert (produced(response).error_code, response.throttle_time_ms) == (0, 0)
            response = subject.ask(connection, fetch((topic.name, 0, 0)), 11)
            [(_, data)] = flat(response)
            assert (data.error_code, response.throttle_time_ms) == (0, 0)
            assert len(data.records) == len(
                batch(b"v" * 1000)
            )  # one batch although there are two, because the quota allows 0 bytes


@pytest.mark.rule("Q-22", "W-13")
def test_ip_address_with_a_nan_connection_rate_quota_gets_no_connection(subject: Subject) -> None:
    address = "127.0.0.23"
    with limited(subject, ({IP: address}, {"connection_creation_rate": math.nan})):
        assert subject.closed(subject.connect(0, address=address), 2000)


@pytest.mark.rule("Q-22")
@pytest.mark.parametrize("name", ["1.2.3", "1", "[::1]", "010.0.0.1", "::ffff:010.0.0.1", "::1%1"])
def test_describe_client_quotas_returns_an_ip_address_in_the_spelling_that_was_set(subject: Subject, name: str) -> None:
    with limited(subject, ({IP: name}, {"connection_creation_rate": 1000.0})):
        assert described(subject, (IP, EXACT, name)) == (0, [{IP: name}])
        assert described(subject, (IP, EXACT, "0.0.0.0")) == (0, [])


@pytest.mark.rule("Q-22")
@pytest.mark.parametrize("name", ["256.1.1.1", "1.2.65536", "[1.2.3.4]", "[::1", "::ffff:1.2.3", "0x7f.1"])
def test_ip_quota_whose_entity_name_is_not_a_valid_address_is_rejected(subject: Subject, name: str) -> None:
    [result] = alter_quotas(subject, ({IP: name}, {"connection_creation_rate": 5.0}), validate_only=True)
    assert (result.error_code, result.error_message) == (42, f"{name} is not a valid IP or resolvable host.")


@pytest.mark.rule("Q-22", "W-13")
@pytest.mark.parametrize(("name", "address"), [("0127.021", "127.0.0.21"), ("[::ffff:127.0.0.22]", "127.0.0.22")])
def test_ip_quota_for_an_unusual_spelling_of_an_address_limits_that_address(
    subject: Subject, name: str, address: str
) -> None:
    with limited(subject, ({IP: name}, {"connection_creation_rate": 1.0})):
        connections = [subject.connect(0, address=address) for _ in range(11)]
        assert subject.closed(connections[-1], 2000)


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
