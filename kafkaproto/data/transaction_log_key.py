# Generated from schemas/data/TransactionLogKey.json by `python -m kafkaproto.generator`. Do not edit.
"""TransactionLogKey: classes for all versions, and the layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class TransactionLogKey(Whole):
    """Data of TransactionLogKey: version 0; not flexible."""

    transactional_id: str = ""  # v0


TRANSACTION_LOG_KEY_V0 = Message(
    TransactionLogKey,
    "transactional_id" / String,
    versions="0",
)

LAYOUTS: dict[int, Message[TransactionLogKey]] = {
    0: TRANSACTION_LOG_KEY_V0,
}
TransactionLogKey.layouts = LAYOUTS
