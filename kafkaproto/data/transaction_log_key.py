# Generated from schemas/data/TransactionLogKey.json by `python -m kafkaproto.generator`. Do not edit.
"""TransactionLogKey: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import String
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class TransactionLogKey(Whole):
    """Key of a record in the topic `__transaction_state`; this data has version 0, which is not flexible (KIP-482)."""

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
