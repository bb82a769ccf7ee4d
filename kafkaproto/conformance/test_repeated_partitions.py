"""Tests of AlterReplicaLogDirs and DeleteRecords with repeated partitions, with topics without partitions, and with long topic names."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch
from kafkaproto.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.describe_log_dirs import DescribeLogDirsRequest

UNKNOWN_PARTITION, INVALID_TOPIC, NO_SUCH_DIRECTORY = 3, 17, 57
ELSEWHERE = "/no/such/directory"


def moved(subject: Subject, *dirs: tuple[str, list[tuple[str, list[int]]]]) -> dict[str, list[tuple[int, int]]]:
    """Send AlterReplicaLogDirs, and return {topic: [(partition, error code)]}. dirs: (path, [(topic, partitions)])."""
    entries = [AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(*topic) for topic in topics]) for path, topics in dirs]
    results = subject.ask_once(AlterReplicaLogDirsRequest(entries), 2).results
    return {r.topic_name: sorted((p.partition_index, p.error_code) for p in r.partitions) for r in results}


@pytest.mark.rule("AD-48")
def test_alter_replica_log_dirs_with_a_repeated_replica_uses_the_last_directory(subject: Subject) -> None:
    topic = new_topic(subject, 2).name
    [directory, *_] = subject.ask_once(DescribeLogDirsRequest(None), 4).results
    own, other = (directory.log_dir, [(topic, [0])]), (ELSEWHERE, [(topic, [0, 1])])
    assert moved(subject, own, other) == {topic: [(0, NO_SUCH_DIRECTORY), (1, NO_SUCH_DIRECTORY)]}
    assert moved(subject, other, own) == {topic: [(0, 0), (1, NO_SUCH_DIRECTORY)]}
    assert moved(subject, (directory.log_dir, [(topic, [1, 1]), (topic, [0])])) == {topic: [(0, 0), (1, 0)]}


@pytest.mark.rule("AD-50")
def test_alter_replica_log_dirs_rejects_topic_names_too_long_for_the_new_directory(subject: Subject) -> None:
    existing = new_topic(subject, name=subject.new_name("long").ljust(214, "x")).name
    fits = existing[:-1]
    [directory, *_] = subject.ask_once(DescribeLogDirsRequest(None), 4).results
    for path in (directory.log_dir, ELSEWHERE):
        assert moved(subject, (path, [(existing, [0])])) == {existing: [(0, INVALID_TOPIC)]}
    assert moved(subject, (ELSEWHERE, [(fits, [0, 9, 10])])) == {
        fits: [(0, NO_SUCH_DIRECTORY), (9, NO_SUCH_DIRECTORY), (10, INVALID_TOPIC)]
    }


@pytest.mark.rule("AD-48")
def test_delete_records_response_omits_topics_without_partitions(subject: Subject) -> None:
    topic = new_topic(subject)
    topic.fill(batch(b"v"))
    assert moved(subject, (ELSEWHERE, [(topic.name, []), ("no-such-topic", [])])) == {}
    assert moved(subject, (ELSEWHERE, [(topic.name, []), ("no-such-topic", [0])])) == {
        "no-such-topic": [(0, NO_SUCH_DIRECTORY)]
    }
    for partitions in ([], [DeleteRecordsPartition(0, 1)]):
        requested = [DeleteRecordsTopic("no-such-topic", []), DeleteRecordsTopic(topic.name, partitions)]
        response = subject.ask_once(DeleteRecordsRequest(requested, 10_000), 2)
        results = [
            (t.name, [(p.partition_index, p.error_code, p.low_watermark) for p in t.partitions])
            for t in response.topics
        ]
        assert results == ([(topic.name, [(0, 0, 1)])] if partitions else [])
