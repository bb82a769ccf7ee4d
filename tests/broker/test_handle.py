"""What tests do with a cluster, where it is easy to go wrong: conditions that ask the cluster, options that are none, topics that are not there."""

from __future__ import annotations

import pytest

from broker.errors import KafkaError
from broker.testing import async_cluster, cluster


def test_a_condition_may_ask_the_cluster_itself() -> None:
    with cluster(topics={"t": 1}) as c:
        c.produce("t", ["a"])
        assert c.wait_for(lambda _: len(c.records("t")) == 1 and c.journal.requests() == [], timeout_s=5)
        with pytest.raises(TimeoutError, match="nothing fulfilled"):
            c.wait_for(lambda _: len(c.records("t")) == 2, timeout_s=0.05)
        assert c.bootstrap


def test_an_option_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"nonsense.*memory_bytes.*example"), cluster(nonsense=3):  # type: ignore[call-arg]
        pass


def test_changing_a_topic_that_is_not_there_says_so() -> None:
    with cluster() as c:
        with pytest.raises(KafkaError, match="no topic nosuch"):
            c.alter_topic("nosuch", max_message_bytes="1")
        with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            c.delete_topic("nosuch")


async def test_the_asyncio_form_has_a_clock_and_a_reset() -> None:
    async with async_cluster(topics={"t": 1}) as c:
        before = c.clock.now_ms()
        await c.clock.advance(60_000)
        assert c.clock.now_ms() >= before + 60_000
        c.produce("t", ["a"])
        c.reset()
        assert c.records("t") == []
        assert c.clock.now_ms() < before + 60_000


def test_settings_may_be_given_as_what_they_are() -> None:
    with cluster(
        config={"num.partitions": 3, "auto.create.topics.enable": True}, topics={"t": {"configs": {"retention.ms": 5}}}
    ) as c:
        c.produce("made-by-use", ["a"])
        assert len({r.partition for r in c.records("made-by-use")} | set(range(3))) == 3
        c.alter_topic("t", max_message_bytes=2000)
        assert c.run_in_loop(lambda: c.state.controller.image.topics["t"].configs) == {
            "retention.ms": "5",
            "max.message.bytes": "2000",
        }


def test_what_is_no_cluster_and_no_record_is_refused_in_words() -> None:
    for options in ({"brokers": "3"}, {"memory_bytes": -1}):
        with pytest.raises(ValueError, match="for example"), cluster(**options):  # type: ignore[arg-type]
            pass
    with pytest.raises(TypeError, match="dict of names"), cluster(topics=["t"]):  # type: ignore[arg-type]
        pass
    with cluster() as c:
        with pytest.raises(TypeError, match="list of records"):
            c.produce("t", "abc")
        with pytest.raises(TypeError, match="NewRecord"):
            c.produce("t", [("k", "v", "h")])  # type: ignore[list-item]
    with pytest.raises(RuntimeError, match="the cluster is stopped"):
        c.records("t")
