# Generated from schemas/data/ConsumerGroupRegularExpressionValue.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupRegularExpressionValue: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass, field

from kafkaproto.arrays import CompactArray
from kafkaproto.message import Message
from kafkaproto.primitives import CompactString, Int64
from kafkaproto.structs import Whole
from kafkaproto.tags import Tags


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupRegularExpressionValue(Whole):
    """Value of a record whose key is `ConsumerGroupRegularExpressionKey`; this data has version 0, which is flexible (KIP-482)."""

    topics: list[str] = field(default_factory=list)
    version: int = 0
    timestamp: int = 0
    unknown_tagged_fields: list[tuple[int, bytes]] | None = None


CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE_V0 = Message(
    ConsumerGroupRegularExpressionValue,
    "topics" / CompactArray(CompactString),
    "version" / Int64,
    "timestamp" / Int64,
    Tags(),
    versions="0",
)

LAYOUTS: dict[int, Message[ConsumerGroupRegularExpressionValue]] = {
    0: CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE_V0,
}
ConsumerGroupRegularExpressionValue.layouts = LAYOUTS
