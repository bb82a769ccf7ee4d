# Generated from schemas/data/ConsumerGroupRegularExpressionKey.json by `python -m kafkaproto.generator`. Do not edit.
"""ConsumerGroupRegularExpressionKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class ConsumerGroupRegularExpressionKey(Whole):
    """Key of a record in the topic `__consumer_offsets`; this data has version 16, which is not flexible (KIP-482)."""

    group_id: str = ""  # v16
    regular_expression: str = ""  # v16


CONSUMER_GROUP_REGULAR_EXPRESSION_KEY_V16 = Message(
    ConsumerGroupRegularExpressionKey,
    "group_id" / String,
    "regular_expression" / String,
    versions="16",
)

LAYOUTS: dict[int, Message[ConsumerGroupRegularExpressionKey]] = {
    16: CONSUMER_GROUP_REGULAR_EXPRESSION_KEY_V16,
}
ConsumerGroupRegularExpressionKey.layouts = LAYOUTS
