"""Reports the differences of two metadata images as events: changed topics, leaders and in-sync replicas."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaproto.broker.metadata.image import Image
from kafkaproto.broker.runtime.events import Events


def report_topics(events: Events, old: Image, new: Image, changed: Sequence[str], now_ms: int) -> None:
    """Report each topic in `changed` as the event `topic_changed`, and each change of a leader or ISR to the journal.

    The journal is the list of requests, throttles and state changes that tests read. old, new: the metadata before and after the change.
    """
    for name in changed:
        before, after = old.topics.get(name), new.topics.get(name)
        if events.topic_changed is not None:
            events.topic_changed(before, after, now_ms)
        if before is None or after is None or events.noted is None:
            continue
        for was, now in zip(before.partitions, after.partitions, strict=False):
            facts = {"topic": name, "partition": now.index}
            if was.leader_epoch != now.leader_epoch:
                leader = {**facts, "leader": now.leader, "leader_epoch": now.leader_epoch}
                events.noted(now_ms, now.leader, "leader", leader)
            if was.isr != now.isr:
                events.noted(now_ms, now.leader, "isr", {**facts, "isr": list(now.isr)})
