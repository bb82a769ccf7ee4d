"""Tests of settings of the new protocol (KIP-848): the session timeout, the heartbeat interval, and the maximum number of members of a group."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.consumer_groups import ALL, ConsumerGroup, refusal
from kafkaproto.conformance.groups import subscription
from kafkaproto.conformance.internal_topics import APPLIED_MS
from kafkaproto.conformance.needs import settings_in_force
from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_consumer_groups import UNKNOWN_MEMBER, unknown
from kafkaproto.conformance.test_group_configs import (
    DEFAULT,
    HEARTBEAT,
    INVALID_CONFIG,
    OK,
    SESSION,
    SET,
    alter,
    described,
)
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

PROFILE = "consumer-limits"
TIMEOUTS = "group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms"
pytestmark = pytest.mark.needs(*TIMEOUTS, "group.consumer.max.size", offsets_topic=True)

SESSION_MS, INTERVAL_MS = 3_000, 500
FULL, FENCED, UNSUPPORTED_ASSIGNOR = 81, 110, 112
AWAY_EPOCH, STALE_EPOCH = -2, 9


@pytest.mark.rule("GN-67")
def test_heartbeat_responses_contain_the_heartbeat_interval_set_at_the_broker(subject: Subject) -> None:
    """The broker's heartbeat interval is set to 500 ms, and heartbeat responses contain this interval.

    The broker's settings also lower the minimums of the heartbeat interval and the session timeout, because both have values below Kafka's default
    minimums.
    """
    bounds = [name.replace("consumer.", "consumer.min.") for name in TIMEOUTS]
    assert settings_in_force(subject, [*TIMEOUTS, *bounds]) == dict(
        zip([*TIMEOUTS, *bounds], ["3000", "500", "1000", "100"], strict=True)
    )
    group = ConsumerGroup(subject)
    assert group.join("A").heartbeat_interval_ms == INTERVAL_MS
    assert group.heartbeat("A", 1).heartbeat_interval_ms == INTERVAL_MS


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("CF-15")
def test_group_settings_that_are_not_set_default_to_the_settings_of_the_broker(subject: Subject) -> None:
    """The broker's session timeout is 3 s and its heartbeat interval 500 ms. DescribeConfigs marks both as defaults of the group."""
    values = {name.removeprefix("group."): value for name, value in settings_in_force(subject, TIMEOUTS).items()}
    assert values == {SESSION: str(SESSION_MS), HEARTBEAT: str(INTERVAL_MS)}
    expected = {name: (value, DEFAULT) for name, value in values.items()}
    assert described(subject, subject.new_name("g"), SESSION, HEARTBEAT) == expected


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("CF-14")
def test_session_timeout_of_a_group_must_be_longer_than_its_heartbeat_interval(subject: Subject) -> None:
    """IncrementalAlterConfigs rejects a session timeout of a group that is not longer than its heartbeat interval.

    If the group does not have one of the two settings, the broker's value counts: 3 s for the session timeout, 500 ms for the interval.
    """
    too_short = INVALID_CONFIG, f"{SESSION} must be greater than {HEARTBEAT}"
    group = subject.new_name("g")
    assert alter(subject, group, (HEARTBEAT, SET, "3000")) == too_short
    assert alter(subject, group, (HEARTBEAT, SET, "2999")) == OK
    for session_ms, heartbeat_ms, expected in (("2000", "2000", too_short), ("2001", "2000", OK)):
        changes = [(SESSION, SET, session_ms), (HEARTBEAT, SET, heartbeat_ms)]
        assert alter(subject, group, *changes) == alter(subject, group, *reversed(changes)) == expected


@pytest.mark.rule("GN-14", "GN-30")
def test_consumer_group_member_without_successful_heartbeats_is_removed(subject: Subject) -> None:
    """A and B are members. B sends only heartbeats that are rejected, so after the session timeout B is removed, and A gets all partitions."""
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    assert group.enter("B") == (2, [])
    start_ms = subject.now_ms()
    epoch, kept = group.beat("A", 1)
    assert group.beat("A", epoch, kept) == (2, None)

    def gets_all() -> bool:
        result = group.beat("A", 2)
        assert result in [(2, None), (3, ALL)]
        error = group.heartbeat("B", STALE_EPOCH).error_code
        removed_meanwhile = error == UNKNOWN_MEMBER and subject.slack_ms > 0  # after the response to A
        assert error == (UNKNOWN_MEMBER if result[0] == 3 or removed_meanwhile else FENCED)
        return result[0] == 3

    wait_until(subject, gets_all, f"member B is removed from group {group.id}")
    assert SESSION_MS - 200 <= subject.now_ms() - start_ms <= SESSION_MS + subject.slack_ms + 200
    assert refusal(group.heartbeat("B", 2)) == unknown("B", group)
    assert group.epochs == ("Stable", 3, 3)


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("GN-30", "GN-69")
@pytest.mark.parametrize("group_ms", [1_500, 6_000])
def test_changed_session_timeout_of_a_group_applies_from_a_members_next_heartbeat_on(
    subject: Subject, group_ms: int
) -> None:
    """A and B join, the session timeout of their group changes, and B sends another heartbeat. Both are then silent.

    A is removed after the broker's session timeout, because A has sent no heartbeat since the change. B is removed after the group's session
    timeout. group_ms: the session timeout of the group, shorter or longer than the broker's.
    """
    group = ConsumerGroup(subject)
    assert group.enter("A") == (1, ALL)
    last_ms = {"A": subject.now_ms()}
    assert group.enter("B") == (2, [])
    assert alter(subject, group.id, (SESSION, SET, str(group_ms)), validate_only=False) == OK
    subject.pass_ms(APPLIED_MS)
    assert group.beat("B", 2) == (2, None)
    last_ms["B"] = subject.now_ms()
    timeouts = {"A": SESSION_MS, "B": group_ms}
    remaining = sorted(timeouts, key=timeouts.__getitem__)
    while remaining:
        removed = remaining.pop(0)
        wait_until(
            subject,
            lambda: sorted(group.targets()) == sorted(remaining),
            f"member {removed} is removed from group {group.id}",
        )
        elapsed_ms = subject.now_ms() - last_ms[removed]
        assert timeouts[removed] - 200 <= elapsed_ms <= timeouts[removed] + subject.slack_ms + 200


@pytest.mark.rule("GN-30", "GN-35")
def test_static_member_that_left_with_epoch_minus_2_is_removed_at_session_timeout(subject: Subject) -> None:
    """Static member A leaves with epoch -2 halfway through its session timeout. This does not restart the timeout, at whose end A is removed.

    Member B can then join with A's instance id.
    """
    group = ConsumerGroup(subject)
    assert group.enter("A", instance_id="i1") == (1, ALL)
    start_ms = subject.now_ms()
    subject.pass_ms(SESSION_MS / 2)
    assert group.result(group.heartbeat("A", AWAY_EPOCH, instance_id="i1")) == (AWAY_EPOCH, None)
    [member] = group.described().members
    assert (member.member_id, member.member_epoch) == ("A", AWAY_EPOCH)
    wait_until(subject, lambda: not group.described().members, f"member A is removed from group {group.id}")
    assert SESSION_MS - 200 <= subject.now_ms() - start_ms <= SESSION_MS + subject.slack_ms + 200
    assert group.epochs == ("Empty", 2, 1)
    assert group.enter("B", instance_id="i1") == (3, ALL)


def classic_join(group: ConsumerGroup, version: int, instance_id: str | None = None) -> Any:
    """Send a JoinGroup without a member id to a group of the new protocol, and return the response. instance_id: None for a dynamic member."""
    protocols = [JoinGroupRequestProtocol("range", subscription(group.topic.name))]
    return group.ask(JoinGroupRequest(group.id, 10_000, 10_000, "", instance_id, "consumer", protocols), version)


@pytest.mark.rule("GC-30", "GN-14")
def test_consumer_group_rejects_members_beyond_group_consumer_max_size(subject: Subject) -> None:
    """A fourth member is rejected with GROUP_MAX_SIZE_REACHED, whichever protocol it uses. Members of the group may join again."""
    group = ConsumerGroup(subject)
    for number, member_id in enumerate("ABC", 1):
        assert group.enter(member_id)[0] == number
    for instance_id in (None, "i1"):
        assert refusal(group.join("D", instance_id=instance_id))[0] == FULL
    # The assignor is checked before the size of the group, and the size before the member id; a leaving member needs no place.
    assert refusal(group.join("D", server_assignor="none"))[0] == UNSUPPORTED_ASSIGNOR
    assert refusal(group.heartbeat("D", 2))[0] == FULL
    assert refusal(group.heartbeat("D", -1))[0] == UNKNOWN_MEMBER
    for version in (3, 9):
        response = classic_join(group, version)
        assert (response.error_code, response.member_id, response.members) == (FULL, "", [])
    assert group.epochs[1] == 3
    assert group.result(group.join("C"))[0] == 3
    assert group.heartbeat("C", -1).error_code == 0
    assert classic_join(group, 3).error_code == 0
    assert refusal(group.join("D"))[0] == FULL


@pytest.mark.rule("GC-30", "GN-32")
def test_full_consumer_group_rejects_a_static_member_with_a_new_member_id(subject: Subject) -> None:
    """Static member A and a static classic member restart while the group is full. Both get GROUP_MAX_SIZE_REACHED.

    Each of them joins with its instance id, but without its old member id, because a new process does not know this id. When member C has left,
    both can join.
    """
    group = ConsumerGroup(subject)
    assert group.enter("A", instance_id="i1")[0] == 1
    assert classic_join(group, 5, "i2").error_code == 0
    assert group.enter("C")[0] == 3
    assert group.result(group.heartbeat("A", AWAY_EPOCH, instance_id="i1")) == (AWAY_EPOCH, None)
    assert refusal(group.join("B", instance_id="i1"))[0] == FULL
    response = classic_join(group, 5, "i2")
    assert (response.error_code, response.member_id) == (FULL, "")
    assert {m.instance_id: m.member_id for m in group.described().members}["i1"] == "A"
    assert group.heartbeat("C", -1).error_code == 0
    assert group.join("B", instance_id="i1").error_code == 0
    assert classic_join(group, 5, "i2").error_code == 0
    assert sorted(str(m.instance_id) for m in group.described().members) == ["i1", "i2"]
