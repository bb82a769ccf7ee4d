"""Tests of subscriptions by regular expression in consumer groups of the new protocol (KIP-848), which Kafka 4 and later serve."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.consumer_groups import ALL, REGEX_VERSION, ConsumerGroup, refusal
from kafkaproto.conformance.group_log import CURRENT, GROUP, MEMBER, REGEX, GroupLog
from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject

PROFILE = "consumer"
pytestmark = [pytest.mark.needs(offsets_topic=True), pytest.mark.releases(first="4.0")]

INVALID_REGULAR_EXPRESSION = 128
TIMEOUT_MS = 60_000
RESOLVED_MS = 300
"""The time in ms within which the coordinator resolves regular expressions."""
REFRESH_MS = 10_500
"""The time in ms after which the coordinator may resolve the regular expressions of a group again: 10 s, plus half a second of tolerance."""


@pytest.fixture
def group(subject: Subject) -> ConsumerGroup:
    subject.version(ApiKey.CONSUMER_GROUP_HEARTBEAT, REGEX_VERSION, lowest=REGEX_VERSION)
    return ConsumerGroup(subject)


def join(group: ConsumerGroup, member_id: str, regex: str, *names: str) -> Any:
    """Send the first heartbeat of a member that subscribes to the regular expression `regex`, and return the response.

    names: topics to which the member also subscribes by name.
    """
    return group.heartbeat(member_id, 0, [], list(names) or None, TIMEOUT_MS, subscribed_topic_regex=regex)


def wait_for_epoch(group: ConsumerGroup, epoch: int) -> None:
    """Wait until the group has this epoch. A new epoch starts when a regular expression is resolved."""
    wait_until(group.subject, lambda: group.epochs[1] == epoch, f"group {group.id} has epoch {epoch}")


def whole(group: ConsumerGroup) -> str:
    return re.escape(group.topic.name).replace(r"\-", "-")


@pytest.mark.rule("GN-49", "GN-51", "GN-65", "SN-38")
def test_regex_of_a_joining_member_is_resolved_after_the_join_response(group: ConsumerGroup) -> None:
    """The response to the first heartbeat has no partition. Later the group has a new epoch, and a heartbeat gets all partitions (scenario SN-38)."""
    regex = whole(group)[:-1] + "."
    assert group.result(join(group, "A", regex)) == (1, [])
    wait_for_epoch(group, 2)
    assert group.beat("A", 1) == (2, ALL)
    description = group.described()
    [member] = description.members
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ([], regex)
    assert group.epochs == ("Stable", 2, 2)


@pytest.mark.rule("GN-49")
def test_regular_expression_of_a_subscription_matches_only_whole_topic_names(group: ConsumerGroup) -> None:
    name = whole(group)
    for member_id, regex in (("A", name[:-1]), ("B", name[1:]), ("C", name.upper())):
        assert group.result(join(group, member_id, regex))[1] == []
    wait_for_epoch(group, 1)
    group.subject.pass_ms(RESOLVED_MS)
    assert group.epochs[1] == 1
    assert group.result(join(group, "D", "(?i)" + name.upper() + "|nothing"))[0] == 1


@pytest.mark.rule("GN-49", "GN-50")
@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("(", "missing closing )"),
        ("a(?=b)", "invalid or unsupported Perl syntax"),
        ("a**", "invalid nested repetition operator"),
        ("[b-a]", "invalid character class range"),
        (r"\1", "invalid escape sequence"),
    ],
)
def test_heartbeats_with_invalid_regular_expressions_are_rejected(
    group: ConsumerGroup, regex: str, reason: str
) -> None:
    error, message = refusal(join(group, "A", regex))
    assert error == INVALID_REGULAR_EXPRESSION
    assert message == f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}."
    assert refusal(group.heartbeat("A", 1))[0] == 69


@pytest.mark.rule("GN-52", "GN-16")
def test_member_can_subscribe_by_topic_names_and_by_a_regular_expression_together(group: ConsumerGroup) -> None:
    other = group.add_topic()
    assert group.result(join(group, "A", whole(group), other.name)) == (1, {other.name: ALL})
    wait_for_epoch(group, 2)
    assert group.beat("A", 1) == (2, {group.topic.name: ALL, other.name: ALL})
    # The second member has the same expression, which is resolved already.
    epoch, partitions = group.result(join(group, "B", whole(group)))
    assert (epoch, partitions, group.epochs[1]) == (3, [], 3)
    removed = group.heartbeat("A", 2, None, [other.name], subscribed_topic_regex="")
    assert group.result(removed) == (2, {other.name: ALL})
    assert group.epochs[1] == 4
    assert group.beat("A", 2, {other.name: ALL}) == (4, None)
    assert group.beat("B", 3, []) == (4, ALL)


@pytest.mark.rule("GN-52")
def test_member_that_changes_its_regex_revokes_old_topics_before_it_gets_new_topics(group: ConsumerGroup) -> None:
    other = group.add_topic()
    assert group.result(join(group, "A", whole(group)))[0] == 1
    wait_for_epoch(group, 2)
    assert group.beat("A", 1) == (2, ALL)
    group.subject.pass_ms(REFRESH_MS)
    changed = group.heartbeat("A", 2, ALL, subscribed_topic_regex=re.escape(other.name).replace(r"\-", "-"))
    epoch, partitions = group.result(changed)
    assert epoch == 2
    assert partitions == ([] if group.is_release_4_2 else None)
    wait_for_epoch(group, 3)
    if not group.is_release_4_2:
        assert group.beat("A", 2, ALL) == (2, [])
    assert group.beat("A", 2, []) == (3, {other.name: ALL})


@pytest.mark.rule("GN-52")
def test_new_topic_is_assigned_when_the_regular_expression_is_resolved_again(group: ConsumerGroup) -> None:
    assert group.result(join(group, "A", f"{whole(group)}(-later)?"))[0] == 1
    wait_for_epoch(group, 2)
    assert group.beat("A", 1) == (2, ALL)
    later = group.add_topic(2, f"{group.topic.name}-later")
    group.subject.pass_ms(REFRESH_MS)
    assert group.beat("A", 2)[0] == 2
    wait_for_epoch(group, 3)
    assert group.beat("A", 2) == (3, {group.topic.name: ALL, later.name: [0, 1]})


@pytest.mark.rule("GN-51", "GO-5")
def test_regex_record_is_written_after_a_join_and_a_tombstone_when_the_member_leaves(group: ConsumerGroup) -> None:
    log = GroupLog(group)
    assert group.result(join(group, "A", whole(group)))[0] == 1
    wait_for_epoch(group, 2)
    records = log.new()
    assert [record[0] for record in records[:2]] == [MEMBER, GROUP]
    assert [record[:3] for record in records[-2:]] == [(REGEX, "", 0), (GROUP, "", 0)]
    assert records[0][3].subscribed_topic_regex == whole(group)
    assert records[-2][3].topics == [group.topic.name]
    assert records[-2][3].timestamp > 0
    assert group.beat("A", -1) == (-1, None)
    kinds = log.kinds()
    assert (CURRENT, "A", None) in kinds
    assert kinds[-2:] == [(REGEX, "", None), (GROUP, "", 0)]


@pytest.mark.rule("GN-38")
def test_member_joining_with_an_unresolved_regex_empties_all_target_assignments(group: ConsumerGroup) -> None:
    """Member C joins with a regular expression. When the expression is resolved, epoch 2 starts. Member B then joins with another expression.

    B's join computes the target assignment of epoch 2. B has no topics yet, because the broker has not resolved B's expression. Like Kafka, the
    broker still treats the subscriptions of all members as equal, because they were equal before B joined. For equal subscriptions, the broker uses
    the topics of one member for all members. Here this member is B, so B and C get empty target assignments.
    """
    assert group.result(join(group, "C", whole(group))) == (1, [])
    wait_for_epoch(group, 2)
    assert group.result(join(group, "B", whole(group)[:-1])) == (2, [])
    assert group.beat("C", 1, []) == (2, None)
    assert group.targets() == {"B": {}, "C": {}}


@pytest.mark.rule("GN-51")
def test_member_that_changes_to_a_regex_without_matches_starts_a_new_group_epoch(
    group: ConsumerGroup,
) -> None:
    """A member replaces its expression by an expression that matches no topic.

    When the broker has resolved the new expression, the group subscribes to no topic any more, so a new epoch starts.
    """
    regex_without_matches = f"no-{whole(group)}"
    assert group.result(join(group, "A", whole(group))) == (1, [])
    wait_for_epoch(group, 2)
    assert group.result(group.heartbeat("A", 1, subscribed_topic_regex=regex_without_matches)) == (2, None)
    assert group.beat("A", 2) == (2, None)
    wait_for_epoch(group, 3)
    assert group.result(join(group, "B", regex_without_matches)) == (4, [])


@pytest.mark.rule("GN-52")
def test_all_regexes_are_resolved_again_when_a_regex_loses_its_last_member(group: ConsumerGroup) -> None:
    """Member A replaces its expression by that of member B, so that no member uses A's old expression any more.

    When the members use fewer expressions than the broker has resolved, the broker resolves all used expressions again. Here this is only B's
    expression, although it has not changed.
    """
    log = GroupLog(group)
    assert group.result(join(group, "A", whole(group))) == (1, [])
    wait_for_epoch(group, 2)
    assert group.result(join(group, "B", f"{whole(group)}|x")) == (2, [])
    group.subject.pass_ms(REFRESH_MS)
    assert group.beat("B", 2, [])[0] == 2
    wait_for_epoch(group, 3)
    group.subject.pass_ms(REFRESH_MS)
    log.new()
    assert group.result(group.heartbeat("A", 1, subscribed_topic_regex=f"{whole(group)}|x"))[0] == 4
    group.subject.pass_ms(RESOLVED_MS)
    assert [value is None for kind, _, _, value in log.new() if kind == REGEX] == [True, False]


@pytest.mark.rule("GN-38")
def test_member_that_subscribes_to_nothing_gets_partitions_of_another_members_topic(group: ConsumerGroup) -> None:
    """Member A joins with a regular expression. When the expression is resolved, epoch 2 starts. Member C then joins and subscribes to nothing.

    C's join computes the target assignment of epoch 2. Like Kafka, the broker still treats the subscriptions of all members as equal, because they
    were equal before C joined. For equal subscriptions, the broker uses the topics of one member for all members. Here this member is A, so C gets
    partitions of A's topic.
    """
    assert group.result(join(group, "A", whole(group))) == (1, [])
    wait_for_epoch(group, 2)
    assert group.result(join(group, "C", "")) == (2, [])
    assert group.sizes() == {"A": 3, "C": 3}
    epoch, partitions = group.beat("A", 1, [])
    assert (epoch, len(partitions)) == (2, 3)
