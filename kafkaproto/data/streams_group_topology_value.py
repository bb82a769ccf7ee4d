# Generated from schemas/data/StreamsGroupTopologyValue.json by `python -m kafkaproto.generator`. Do not edit.
"""StreamsGroupTopologyValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int16, Int32
from kafkaproto.structs import Struct, Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class TopicConfig(Struct):
    """One item of the list ``TopicInfo.topic_configs``."""

    key: str = ""
    value: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class TopicInfo(Struct):
    """One item of the list ``Subtopology.state_changelog_topics`` or ``Subtopology.repartition_source_topics``."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[TopicConfig] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class CopartitionGroup(Struct):
    """One item of the list ``Subtopology.copartition_groups``."""

    source_topics: list[int] = field(default_factory=list)
    source_topic_regex: list[int] = field(default_factory=list)
    repartition_source_topics: list[int] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class Subtopology(Struct):
    """One item of the list ``StreamsGroupTopologyValue.subtopologies``."""

    subtopology_id: str = ""
    source_topics: list[str] = field(default_factory=list)
    source_topic_regex: list[str] = field(default_factory=list)
    state_changelog_topics: list[TopicInfo] = field(default_factory=list)
    repartition_sink_topics: list[str] = field(default_factory=list)
    repartition_source_topics: list[TopicInfo] = field(default_factory=list)
    copartition_groups: list[CopartitionGroup] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


@dataclass(slots=True, eq=False, repr=False)
class StreamsGroupTopologyValue(Whole):
    """Value of a record whose key is `StreamsGroupTopologyKey`; this data has version 0, which is flexible (KIP-482)."""

    epoch: int = 0
    subtopologies: list[Subtopology] = field(default_factory=list)
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


TOPIC_CONFIG_V0 = Message(
    TopicConfig,
    "key" / CompactString,
    "value" / CompactString,
    Tags(),
    versions="0",
)

TOPIC_INFO_V0 = Message(
    TopicInfo,
    "name" / CompactString,
    "partitions" / Int32,
    "replication_factor" / Int16,
    "topic_configs" / CompactArray(TOPIC_CONFIG_V0),
    Tags(),
    versions="0",
)

COPARTITION_GROUP_V0 = Message(
    CopartitionGroup,
    "source_topics" / CompactArray(Int16),
    "source_topic_regex" / CompactArray(Int16),
    "repartition_source_topics" / CompactArray(Int16),
    Tags(),
    versions="0",
)

SUBTOPOLOGY_V0 = Message(
    Subtopology,
    "subtopology_id" / CompactString,
    "source_topics" / CompactArray(CompactString),
    "source_topic_regex" / CompactArray(CompactString),
    "state_changelog_topics" / CompactArray(TOPIC_INFO_V0),
    "repartition_sink_topics" / CompactArray(CompactString),
    "repartition_source_topics" / CompactArray(TOPIC_INFO_V0),
    "copartition_groups" / CompactArray(COPARTITION_GROUP_V0),
    Tags(),
    versions="0",
)

STREAMS_GROUP_TOPOLOGY_VALUE_V0 = Message(
    StreamsGroupTopologyValue,
    "epoch" / Int32,
    "subtopologies" / CompactArray(SUBTOPOLOGY_V0),
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[StreamsGroupTopologyValue]] = {
    0: STREAMS_GROUP_TOPOLOGY_VALUE_V0,
}
StreamsGroupTopologyValue.layouts = LAYOUTS
