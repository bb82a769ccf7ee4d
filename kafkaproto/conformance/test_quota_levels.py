"""Tests of quota precedence: the eight levels of KIP-55, sensors that clients share, and clients without a client id."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkaproto.conformance.needs import REQUEST_MAX_BYTES
from kafkaproto.conformance.scene import UNTIL_KNOWN_MS, Entity, Topic, alter_quotas, limited, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import produce_of_bytes

PRODUCE = "producer_byte_rate"
USER, CLIENT = "user", "client-id"
ANONYMOUS = "ANONYMOUS"
"""The user of every client on a listener without authentication."""
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
    """Send a large Produce request with a new client id, and return the client's quota in bytes per second, computed from the throttle time.

    Returns infinity if the request is not throttled. client_id: must not have been used before, so that the request is the client's first.
    """
    connection = subject.connect(0, client_id)
    size = 200_000
    throttle_times = subject.ask(connection, produce_of_bytes(connection, topic.name, size), VERSION).throttle_time_ms
    return float(round(size / (throttle_times + 10_000) * 1000, -2)) if throttle_times else float("inf")


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.rule("Q-8")
def test_client_is_throttled_by_the_most_specific_of_eight_user_and_client_quotas(subject: Subject) -> None:
    """The test sets quotas of the eight levels of KIP-55 one after another. Each quota applies to clients without a more specific quota."""
    topic = new_topic(subject)
    arguments = [subject.new_name("given") for _ in LEVELS]
    winners = (  # the bounds of a named and an unnamed client after each added level
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
            names = arguments if "given" in level.values() else [None]
            new_changes: list[tuple[Entity, dict[str, float | None]]] = [
                ({k: name if v == "given" else v for k, v in level.items()}, {PRODUCE: bound}) for name in names
            ]
            changes += new_changes
            assert [result.error_code for result in alter_quotas(subject, *new_changes)] == [0] * len(new_changes)
            subject.pass_ms(UNTIL_KNOWN_MS)
            for name, expected in zip((arguments[count], subject.new_name("other")), winners[count], strict=True):
                # Every client has its own sensor, except where the user's quota applies; that sensor must expire first.
                if count in shared_by_the_user:
                    if subject.clock_slack_ms:
                        continue
                    subject.pass_ms(12_000)
                assert bound_of(subject, topic, name) == expected, (count, level)
    finally:
        alter_quotas(subject, *((entity, dict.fromkeys(values)) for entity, values in changes))
        subject.pass_ms(UNTIL_KNOWN_MS)


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.rule("Q-8")
def test_two_client_ids_of_one_user_share_the_user_quota_but_not_user_client_quotas(subject: Subject) -> None:
    topic = new_topic(subject)
    names = [subject.new_name("shared") for _ in range(2)]

    def throttle_times(client_id: str, size: int) -> int:
        connection = subject.connect(0, client_id)
        return int(subject.ask(connection, produce_of_bytes(connection, topic.name, size), VERSION).throttle_time_ms)

    pairs: list[tuple[Entity, dict[str, float]]] = [
        ({USER: ANONYMOUS, CLIENT: name}, {PRODUCE: 1000.0}) for name in names
    ]
    with limited(subject, *pairs):
        assert [throttle_times(name, 9000) for name in names] == [0, 0]
        assert all(throttle_times(name, 5000) > 0 for name in names)
    with limited(subject, ({USER: ANONYMOUS}, {PRODUCE: 100_000.0})):
        first, second = (throttle_times(name, 900_000) for name in names)
        assert second - first >= 7500


@pytest.mark.needs(at_least={"socket.request.max.bytes": REQUEST_MAX_BYTES})
@pytest.mark.rule("D9", "Q-9")
def test_default_client_quota_does_not_apply_to_an_empty_client_id(subject: Subject) -> None:
    topic = new_topic(subject)
    with limited(subject, ({CLIENT: None}, {PRODUCE: 10_000.0})):
        throttle_times = []
        for client_id in ("", None):
            connection = subject.connect(0, client_id)
            request = produce_of_bytes(connection, topic.name, 150_000)
            throttle_times.append(subject.ask(connection, request, VERSION).throttle_time_ms)
    if subject.semantics == "kafka":
        assert throttle_times == [0, 0]
    else:
        assert throttle_times[0] > 0 and throttle_times[1] > throttle_times[0]  # both count as one client
