"""Whose quota counts: the eight levels of KIP-55, sensors that clients share, and clients without a name."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkaproto.conformance.scene import UNTIL_KNOWN_MS, Entity, Topic, alter_quotas, limited, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import produce_of_bytes

PRODUCE = "producer_byte_rate"
USER, CLIENT = "user", "client-id"
ANONYMOUS = "ANONYMOUS"
"""Who everybody is on a listener without authentication."""
VERSION = 9

LEVELS: Sequence[tuple[Entity, float]] = (
    ({USER: None}, 1000.0),
    ({CLIENT: None}, 2000.0),
    ({USER: None, CLIENT: None}, 3000.0),
    ({CLIENT: "given"}, 4000.0),
    ({USER: None, CLIENT: "given"}, 5000.0),
    ({USER: ANONYMOUS}, 6000.0),
    ({USER: ANONYMOUS, CLIENT: None}, 7000.0),
    ({USER: ANONYMOUS, CLIENT: "given"}, 8000.0),
)


def bound_of(subject: Subject, topic: Topic, client_id: str) -> float:
    """The quota that a client has, by what a large first request is throttled for: all identities are fresh."""
    connection = subject.connect(0, client_id)
    size = 200_000
    told = subject.ask(connection, produce_of_bytes(connection, topic.name, size), VERSION).throttle_time_ms
    return float(round(size / (told + 10_000) * 1000, -2)) if told else float("inf")


@pytest.mark.rule("Q-8")
def test_the_most_specific_of_eight_levels_counts(subject: Subject) -> None:
    """The precedence of KIP-55, from the least to the most specific: each new level takes over for whom it names."""
    topic = new_topic(subject)
    given = [subject.new_name("given") for _ in LEVELS]
    winners = (  # the bound of a client that is named, and of one that is not, with each level more
        (1000, 1000),
        (1000, 1000),
        (3000, 3000),
        (3000, 3000),
        (5000, 3000),
        (6000, 6000),
        (7000, 7000),
        (8000, 7000),
    )
    shared_by_the_user = (0, 1, 5)
    changes: list[tuple[Entity, dict[str, float | None]]] = []
    try:
        for count, (level, bound) in enumerate(LEVELS):
            names = given if "given" in level.values() else [None]
            new: list[tuple[Entity, dict[str, float | None]]] = [
                ({k: name if v == "given" else v for k, v in level.items()}, {PRODUCE: bound}) for name in names
            ]
            changes += new
            assert [answer.error_code for answer in alter_quotas(subject, *new)] == [0] * len(new)
            subject.pass_ms(UNTIL_KNOWN_MS)
            for name, wanted in zip((given[count], subject.new_name("other")), winners[count], strict=True):
                # Every client has a sensor of its own but where the user's counts, which has to be forgotten first.
                if count in shared_by_the_user:
                    if subject.clock_slack_ms:
                        continue
                    subject.pass_ms(12_000)
                assert bound_of(subject, topic, name) == wanted, (count, level)
    finally:
        alter_quotas(subject, *((entity, dict.fromkeys(values)) for entity, values in changes))
        subject.pass_ms(UNTIL_KNOWN_MS)


@pytest.mark.rule("Q-8")
def test_all_clients_of_a_user_share_its_sensor_and_those_of_a_pair_have_their_own(subject: Subject) -> None:
    topic = new_topic(subject)
    names = [subject.new_name("shared") for _ in range(2)]

    def told(client_id: str, size: int) -> int:
        connection = subject.connect(0, client_id)
        return int(subject.ask(connection, produce_of_bytes(connection, topic.name, size), VERSION).throttle_time_ms)

    pairs: list[tuple[Entity, dict[str, float]]] = [
        ({USER: ANONYMOUS, CLIENT: name}, {PRODUCE: 1000.0}) for name in names
    ]
    with limited(subject, *pairs):
        assert [told(name, 9000) for name in names] == [0, 0]
        assert all(told(name, 5000) > 0 for name in names)
    with limited(subject, ({USER: ANONYMOUS}, {PRODUCE: 100_000.0})):
        first, second = (told(name, 900_000) for name in names)
        assert second - first >= 7500


@pytest.mark.rule("D9", "Q-9")
def test_an_empty_client_id_and_the_default_quota(subject: Subject) -> None:
    topic = new_topic(subject)
    with limited(subject, ({CLIENT: None}, {PRODUCE: 10_000.0})):
        told = []
        for client_id in ("", None):
            connection = subject.connect(0, client_id)
            request = produce_of_bytes(connection, topic.name, 150_000)
            told.append(subject.ask(connection, request, VERSION).throttle_time_ms)
    if subject.semantics == "kafka":
        assert told == [0, 0]
    else:
        assert told[0] > 0 and told[1] > told[0]  # they are one client
