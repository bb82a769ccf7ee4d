"""The start report of `kafkaproto broker`: release, brokers, topics, recovered data, how to stop, where the documentation is.

This module also creates the topics of `--topic`, and logs a warning if a topic in the data directory differs from its `--topic` option.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import kafkaproto
from kafkaproto.api import ApiKey
from kafkaproto.broker.cluster import Cluster, topics_left
from kafkaproto.broker.config.java_text import java_items
from kafkaproto.broker.config.listeners import address_text
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import Topic
from kafkaproto.broker.observe.diagnostics import no_offsets_topic
from kafkaproto.releases import versions

logger = logging.getLogger("kafkaproto")

MOST_LINES = 20
"""The maximum number of brokers, and of topics, that the start report lists. If there are more, a further line says how many are not listed."""
NOT_SERVED = {"share groups": ApiKey.SHARE_GROUP_HEARTBEAT, "streams groups": ApiKey.STREAMS_GROUP_HEARTBEAT}
"""Maps each kind of group that this broker lacks (KIP-932, KIP-1071) to the key of one of its APIs.

The start report says that a kind is missing if the emulated release of Kafka has this API.
"""
DEFAULT = -1
"""A stand-in for a number of partitions or replicas that `--topic` does not give; the default in the broker's settings then applies."""


class TopicOption(NamedTuple):
    """A topic that the option `--topic` names. partitions, replicas: their numbers; DEFAULT if the option does not give them."""

    name: str
    partitions: int = DEFAULT
    replicas: int = DEFAULT

    def __str__(self) -> str:
        numbers = [str(number) for number in (self.partitions, self.replicas) if number != DEFAULT]
        return ":".join([self.name, *numbers])


def create_topics(cluster: Cluster, topics: Sequence[TopicOption]) -> None:
    """Create the topics of `--topic`. Raises ConfigError if a topic cannot be created.

    A topic that is already in the data directory is left unchanged. If its number of partitions or replicas differs from the option, a warning is
    logged.
    """
    names = [option.name for option in topics]
    if repeated_name := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"--topic {repeated_name} is given {names.count(repeated_name)} times; name each topic once")
    recovered_names = topics_left(cluster)
    for option in topics:
        if option.name in recovered_names:
            _compare(option, cluster.controller.image.topics[option.name])
            continue
        try:
            cluster.controller.put_topic(cluster.controller.plan_topic(*option))
        except KafkaError as error:
            rejection = str(error.message).rstrip(".")
            raise ConfigError(f"--topic {option.name}: {rejection}; for example --topic orders:6:1") from None


def _compare(option: TopicOption, topic: Topic) -> None:
    exists = (len(topic.partitions), topic.replication_factor)
    if any(value not in (DEFAULT, has) for value, has in zip(option[1:], exists, strict=True)):
        logger.warning(
            "--topic %s is ignored: the data directory already contains topic %s with %s",
            option,
            topic.name,
            _shape(topic),
        )


def log_start(cluster: Cluster) -> None:
    """Log the lines of the start report at INFO, and a warning if the cluster has too few brokers to create `__consumer_offsets`."""
    if logger.isEnabledFor(logging.INFO):
        for line in report(cluster, os.getpid()):
            logger.info("%s", line)
    if reason := no_offsets_topic(cluster.config, cluster.controller.image):
        logger.warning("%s", reason)


def report(cluster: Cluster, process_id: int) -> Iterator[str]:
    """Yield the lines of the start report. process_id: the process to name in the command that stops the broker."""
    yield (
        f"kafkaproto {kafkaproto.__version__} serves the API versions of Kafka {cluster.release_name} "
        f"(semantics {cluster.semantics})"
    )
    if missing := [kind for kind, api_key in NOT_SERVED.items() if api_key in versions(cluster.release_name)]:
        yield f"not served, although Kafka {cluster.release_name} serves them: {' and '.join(missing)}"
    image = cluster.controller.image
    yield from _shortened([_broker(cluster, broker_id) for broker_id in image.brokers], "brokers")
    yield from _recovered(cluster)
    yield from _log_directories(cluster)
    topics = [topic for topic in image.topics.values() if not topic.internal]
    recovered_names = topics_left(cluster)
    if topics:
        yield from _shortened([_topic(cluster, topic, recovered_names) for topic in topics], "topics")
    else:
        yield "no topics; --topic NAME creates one"
    yield f"to stop, press Ctrl-C or run: kill {process_id}"
    yield f"documentation: kafkaproto broker --help, {documentation()}"


def _shortened(lines: Sequence[str], what: str) -> Iterator[str]:
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"and {len(lines) - MOST_LINES} more {what}"


def _broker(cluster: Cluster, broker_id: int) -> str:
    broker = cluster.controller.image.brokers[broker_id]
    rack = "" if broker.rack is None else f" in rack {broker.rack}"
    addresses = [f"{name}://{address_text(host, port)}" for name, (host, port) in broker.listeners.items()]
    return f"broker {broker_id}{rack}: {', '.join(addresses)}"


def _recovered(cluster: Cluster) -> Iterator[str]:
    persistence = cluster.persistence
    if persistence is None:
        return
    path = persistence.metadata_log.directory.path
    if persistence.is_new:
        yield f"data directory {path} is new; the next start with it continues from here"
        return
    stop = "a clean stop" if persistence.was_closed else "a process that did not stop cleanly"
    groups = sum(1 for _ in cluster.groups.offsets())
    topics = [topic for topic in cluster.controller.image.topics.values() if topic.name in topics_left(cluster)]
    own = [topic for topic in topics if not topic.internal]
    yield (
        f"data directory {path}: recovered after {stop}: {_count(len(own), 'topic')} with "
        f"{_records(cluster, own)}, committed offsets of {_count(groups, 'group')}, "
        f"{_count(persistence.recovered_quotas, 'client quota')}"
    )


def _log_directories(cluster: Cluster) -> Iterator[str]:
    """Yield a line if `log.dirs` or `log.dir` names other folders than the data directory, because the broker stores nothing there (CF-25)."""
    config = cluster.config
    settings: dict[str, list[str]] = {}
    for broker_id in cluster.nodes.ids:
        name = next((name for name in ("log.dirs", "log.dir") if config.is_given(broker_id, name)), None)
        if name is not None:
            value = str(config.get(broker_id, name))
            settings[f"{name}={value}"] = java_items(value)
    path = cluster.stores.path
    data_directory = None if path is None else os.path.realpath(path)
    for setting, directories in settings.items():
        unused = [directory for directory in directories if os.path.realpath(directory) != data_directory]
        if unused:
            where = setting if unused == directories else f"{', '.join(unused)} of {setting}"
            advice = "--data-dir DIR keeps data over restarts" if path is None else f"the data directory is {path}"
            yield f"nothing is stored in {where}; {advice}"


def _topic(cluster: Cluster, topic: Topic, recovered: Collection[str]) -> str:
    origin = f", recovered with {_records(cluster, [topic])}" if topic.name in recovered else ""
    return f"topic {topic.name}: {_shape(topic)}{origin}"


def _shape(topic: Topic) -> str:
    return f"{_count(len(topic.partitions), 'partition')} and {_count(topic.replication_factor, 'replica')}"


def _records(cluster: Cluster, topics: Sequence[Topic]) -> str:
    """Return the number of records in the topics as text for the start report, such as "3 records".

    The text begins with "up to" if a topic is compacted: the number is computed from offsets, and compaction removes records.
    """
    count = 0
    is_exact = True
    for topic in topics:
        for state in topic.partitions:
            leader = cluster.nodes[state.leader] if state.leader >= 0 else None
            partition = None if leader is None else leader.replicas.find(topic.name, state.index)
            if partition is not None:
                is_exact = is_exact and partition.cleaning is None
                count += partition.log.log_end_offset - partition.log.log_start_offset
    return f"{'' if is_exact or not count else 'up to '}{_count(count, 'record')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def documentation() -> Path:
    """Return the path of the README, either in the checkout or in the installed package."""
    return Path(kafkaproto.__file__).with_name("README.md").resolve()
