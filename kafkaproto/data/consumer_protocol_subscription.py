# Generated from schemas/data/ConsumerProtocolSubscription.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerProtocolSubscription: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import Array
from kafkaproto.message import Message
from kafkaproto.primitives import Int32, NullableBytes, NullableString, String
from kafkaproto.structs import Struct, Whole


@dataclass(slots=True, eq=False, repr=False)
class TopicPartition(Struct):
    """One item of the list ``ConsumerProtocolSubscription.owned_partitions``."""

    topic: str = ""  # v1+
    partitions: list[int] = field(default_factory=list)  # v1+


@dataclass(slots=True, eq=False, repr=False)
class ConsumerProtocolSubscription(Whole):
    """Subscription of a classic consumer, as bytes in its JoinGroup request; this data has versions 0 to 3, none of which is flexible (KIP-482)."""

    topics: list[str] = field(default_factory=list)
    user_data: bytes | None = None
    owned_partitions: list[TopicPartition] = field(default_factory=list)  # v1+, ignorable
    generation_id: int = -1  # v2+, ignorable
    rack_id: str | None = None  # v3+, ignorable


CONSUMER_PROTOCOL_SUBSCRIPTION_V0 = Message(
    ConsumerProtocolSubscription,
    "topics" / Array(String),
    "user_data" / NullableBytes,
    versions="0",
)

TOPIC_PARTITION_V1 = Message(
    TopicPartition,
    "topic" / String,
    "partitions" / Array(Int32),
    versions="1-3",
)

CONSUMER_PROTOCOL_SUBSCRIPTION_V1 = Message(
    ConsumerProtocolSubscription,
    "topics" / Array(String),
    "user_data" / NullableBytes,
    "owned_partitions" / Array(TOPIC_PARTITION_V1),
    versions="1",
)

CONSUMER_PROTOCOL_SUBSCRIPTION_V2 = Message(
    ConsumerProtocolSubscription,
    "topics" / Array(String),
    "user_data" / NullableBytes,
    "owned_partitions" / Array(TOPIC_PARTITION_V1),
    "generation_id" / Int32,
    versions="2",
)

CONSUMER_PROTOCOL_SUBSCRIPTION_V3 = Message(
    ConsumerProtocolSubscription,
    "topics" / Array(String),
    "user_data" / NullableBytes,
    "owned_partitions" / Array(TOPIC_PARTITION_V1),
    "generation_id" / Int32,
    "rack_id" / NullableString,
    versions="3",
)

LAYOUTS: dict[int, Message[ConsumerProtocolSubscription]] = {
    0: CONSUMER_PROTOCOL_SUBSCRIPTION_V0,
    1: CONSUMER_PROTOCOL_SUBSCRIPTION_V1,
    2: CONSUMER_PROTOCOL_SUBSCRIPTION_V2,
    3: CONSUMER_PROTOCOL_SUBSCRIPTION_V3,
}
ConsumerProtocolSubscription.layouts = LAYOUTS
