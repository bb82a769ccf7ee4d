"""Assignors of consumer groups compared with Kafka's own classes (3.9.1 and 4.2.0) on random groups that members join and leave."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from random import Random

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, kafka_jars
from kafkaproto.broker.group.assignment import Assignment, replayed
from kafkaproto.broker.group.assignors import Assignor, assignors
from kafkaproto.broker.group.member_subscription import AssignmentFailed, MemberSubscription, topic_order
from kafkaproto.hash_order import hash_order
from tests.support.oracle.assignors import AssignorOracle
from tests.support.oracle.oracle import Refused

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

GROUPS = 60
CHANGES = 10
ID_CHARACTERS = string.ascii_letters + string.digits + "-_"
"""The characters of the member ids that Java clients create, which are UUIDs in Kafka's own form of base64."""
Topics = dict[bytes, int]


@pytest.fixture(scope="module", params=[KAFKA_VERSION, NEWER_VERSION])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def kafka(version: str) -> Iterator[AssignorOracle]:
    with AssignorOracle(kafka_jars(version)) as process:
        yield process


@pytest.fixture
def ours(version: str) -> Mapping[str, Assignor]:
    is_newer = version == NEWER_VERSION
    return assignors(is_release_4=is_newer, is_release_4_1=is_newer)


def subscribed(rng: Random, topics: Topics, *, same: bool) -> tuple[bytes, ...]:
    return tuple(topic_order(topics if same else rng.sample([*topics], rng.randint(1, len(topics)))))


def changed(rng: Random, members: list[MemberSubscription], topics: Topics, *, same: bool) -> list[MemberSubscription]:
    """Let a member join or leave, a topic grow or appear, or a member change its subscription."""
    kind = rng.random()
    if not members or kind < 0.45:
        static = f"i{rng.randrange(10**6)}" if rng.random() < 0.3 else None
        member_id = "".join(rng.choices(ID_CHARACTERS, k=22)) if rng.random() < 0.7 else f"m{rng.randrange(10**9)}"
        new = MemberSubscription(member_id, static, subscribed(rng, topics, same=same))
        return [*members, new]
    if kind < 0.65 and len(members) > 1:
        members.remove(rng.choice(members))
    elif kind < 0.8:
        topics[rng.choice(sorted(topics))] += rng.randint(1, 5)
    else:
        topics[rng.randbytes(16)] = rng.randint(1, 12)
    if same:
        return [member._replace(topic_ids=subscribed(rng, topics, same=True)) for member in members]
    changing = rng.choice(members) if kind > 0.9 else None
    return [m._replace(topic_ids=subscribed(rng, topics, same=False)) if m is changing else m for m in members]


def cases(
    seed: int, kafka: AssignorOracle, assignor: str, *, same: bool
) -> Iterator[tuple[list[MemberSubscription], Topics]]:
    """Yield groups with the targets that Kafka gave them before their last change."""
    rng = Random(seed)
    for number in range(GROUPS):
        most = 24 if number % 2 else 70
        topics = {rng.randbytes(16): rng.randint(1, most) for _ in range(rng.randint(1, 9))}
        members: list[MemberSubscription] = []
        for _ in range(CHANGES):
            members = changed(rng, members, topics, same=same)
            used = {
                topic_id: count for topic_id, count in topics.items() if any(topic_id in m.topic_ids for m in members)
            }
            yield members, used
            try:
                targets = kafka.assign(assignor, members, used)
            except Refused:
                break
            members = [member._replace(target=replayed(targets.get(member.member_id, {}))) for member in members]


def outcome(assign: Callable[..., Mapping[str, Assignment]], *arguments: object) -> Mapping[str, Assignment] | str:
    """Return the target assignments, or the text of the exception with which the assignor fails."""
    try:
        return assign(*arguments)
    except (Refused, AssignmentFailed) as error:
        return str(error).rpartition("Exception: ")[2]


def listed(targets: Mapping[str, Assignment]) -> dict[str, list[tuple[bytes, list[int]]]]:
    """Return target assignments as lists, so that comparing them also compares the order of topics and partitions."""
    return {member_id: [(t, list(indexes)) for t, indexes in target.items()] for member_id, target in targets.items()}


@pytest.mark.parametrize("same", [True, False], ids=["equal subscriptions", "different subscriptions"])
@pytest.mark.parametrize("name", ["range", "uniform"])
def test_assignors_compute_the_same_target_assignments_as_kafkas_classes(
    kafka: AssignorOracle, ours: Mapping[str, Assignor], version: str, name: str, same: bool
) -> None:
    failed = 0
    for members, topics in cases(8, kafka, name, same=same):
        result = outcome(kafka.assign, name, members, topics)
        by_id = {member.member_id: member for member in members}
        targets = outcome(ours[name], [by_id[member_id] for member_id in hash_order(by_id)], topics)
        if isinstance(result, str) or isinstance(targets, str):
            assert result == targets
            failed += 1
        else:
            assert listed(targets) == listed({m.member_id: result.get(m.member_id, {}) for m in members})
    assert (failed > 0) == (version == KAFKA_VERSION and name == "uniform" and not same)
