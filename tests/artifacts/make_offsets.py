"""Make the artifact `offsets` again: a data directory whose committed offsets are in its metadata log.

    git worktree add --detach CHECKOUT 0a628baa
    python -m tests.artifacts.make_offsets CHECKOUT

0a628baa is the last commit before `__consumer_offsets`. A broker process of the checkout writes the directory, and kafka-python is its client,
so that no code of this checkout takes part in what is stored.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from tests.artifacts.checkouts import running_broker
from tests.artifacts.holding import FOLDER, pack

NAME = "offsets"
GROUPS = 200
MEMBERS_EVERY = 40
"""Each 40th group commits as a member; the other groups commit without members."""
TOPICS = {"orders": 4, "events": 2}
"""The number of partitions of each topic."""
PLACES = [(topic, index) for topic, partitions in TOPICS.items() for index in range(partitions)]
RECORDS = 25
"""The number of records of each partition."""
METADATA = ("", "note", "Vermerk für später", "x" * 60)
_PATIENCE_SECONDS = 30

Offsets = dict[tuple[str, int], tuple[int, str, int]]
"""Maps (topic, partition) to (offset, metadata, leader epoch) of a commit."""


def commits_of(group: int, random: Random) -> list[Offsets]:
    """Return one to three commits of a group: each has one to six partitions, and a later one overwrites offsets of an earlier one."""
    return [
        {
            place: (
                random.randrange(1000) * 1000 + group,
                random.choice(METADATA),
                random.choice((-1, 0, random.randrange(9))),
            )
            for place in sorted(random.sample(PLACES, random.randint(1, len(PLACES))))
        }
        for _ in range(random.randint(1, 3))
    ]


def values_of(topic: str, index: int) -> list[bytes]:
    """Return the values of the records of one partition, in order."""
    return [b"%s %d %d" % (topic.encode(), index, number) for number in range(RECORDS)]


def produce(bootstrap: str) -> None:
    """Create the topics and write their records."""
    from kafka import KafkaAdminClient, KafkaProducer
    from kafka.admin import NewTopic

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics(
        [NewTopic(name, partitions, 1, topic_configs={"retention.ms": "-1"}) for name, partitions in TOPICS.items()]
    )
    admin.close()
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all")
    for topic, index in PLACES:
        for value in values_of(topic, index):
            producer.send(topic, value, partition=index)
    producer.flush(_PATIENCE_SECONDS)
    producer.close()


def commit(bootstrap: str, name: str, commits: list[Offsets], *, has_member: bool) -> None:
    from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=name, enable_auto_commit=False)
    if has_member:
        consumer.subscribe(list(TOPICS))
        while not consumer.assignment():
            consumer.poll(100)
    for offsets in commits:
        consumer.commit({TopicPartition(*place): OffsetAndMetadata(*committed) for place, committed in offsets.items()})
    consumer.close()


def main(checkout: Path) -> None:
    random, began_ms = Random(1), int(time.time() * 1000)
    groups: dict[str, list[list[Any]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "data"
        # A broker that stops would keep only the last commit of each partition.
        with running_broker(checkout, ["--port", "0", "--data-dir", str(folder)], signal.SIGKILL) as bootstrap:
            produce(bootstrap)
            for number in range(GROUPS):
                name, commits = f"group-{number:03}", commits_of(number, random)
                commit(bootstrap, name, commits, has_member=number % MEMBERS_EVERY == 0)
                latest = {place: committed for offsets in commits for place, committed in offsets.items()}
                groups[name] = [[*place, *committed] for place, committed in sorted(latest.items())]
        pack(NAME, folder)
    lines = [f"  {json.dumps(name)}: {json.dumps(offsets)}" for name, offsets in groups.items()]
    facts = json.dumps({"began_ms": began_ms, "ended_ms": int(time.time() * 1000), "groups": {}}, indent=1)
    (FOLDER / f"{NAME}.json").write_text(facts.replace("{}", "{\n" + ",\n".join(lines) + "\n }") + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
