"""The hash of a group's topics compared with Kafka's own class (4.2.0) on random topics (KIP-1101)."""

from __future__ import annotations

import base64
import json
from random import Random
from types import SimpleNamespace

import pytest

from benchmarks.rivals.jars import NEWER_VERSION, kafka_jars
from kafkaproto.broker.group.settings import ConsumerGroupSettings
from kafkaproto.broker.group.subscribed_topics import ClusterTopics
from tests.support.oracle.oracle import Process

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]

RACKS = (None, "r", "rack-1", "r\u00e4ck", "\U0001f600", "\uff5e", "a" * 40)
PARTITIONS = (0, 1, 2, 5, 30, 200)


class TopicHashes(Process):
    program = "TopicHashes.java"


@pytest.mark.rule("GO-8")
def test_topic_hashes_of_random_topics_equal_those_of_kafka() -> None:
    rng = Random(5)
    settings = ConsumerGroupSettings(is_release_4=True, is_release_4_1=True, is_release_4_2=True)
    with TopicHashes(kafka_jars(NEWER_VERSION)) as kafka:
        for _ in range(200):
            image = {
                "".join(rng.choices("abcT._-19", k=rng.choice((1, 9, 60, 249)))): SimpleNamespace(
                    topic_id=rng.randbytes(16),
                    partitions=[
                        SimpleNamespace(replicas=rng.choices(range(len(RACKS)), k=rng.randint(1, 4)))
                        for _ in range(rng.choice(PARTITIONS))
                    ],
                )
                for _ in range(rng.randint(1, 12))
            }
            sent = [
                {
                    "name": name,
                    "id": base64.urlsafe_b64encode(topic.topic_id).decode().rstrip("="),
                    "racks": [[RACKS[r] for r in p.replicas if RACKS[r] is not None] for p in topic.partitions],
                }
                for name, topic in image.items()
            ]
            topics = ClusterTopics(lambda image=image: image, RACKS.__getitem__, settings)  # type: ignore[misc]
            ours = topics.hash_of(topics.subscribed(image))
            assert ours == int(kafka.ask("topics", json.dumps(sent))), sent
