# Generated from schemas/data/EndTxnMarker.json by `python -m kafkaproto.generator`. Do not edit.
"""EndTxnMarker: dataclasses with the fields of all versions, and the wire layout of each version."""

from dataclasses import dataclass

from kafkaproto.message import Message
from kafkaproto.primitives import Int32
from kafkaproto.structs import Whole


@dataclass(slots=True, eq=False, repr=False)
class EndTxnMarker(Whole):
    """Value of the control record that commits or aborts a transaction (KIP-98); this data has version 0, which is not flexible (KIP-482)."""

    coordinator_epoch: int = 0


END_TXN_MARKER_V0 = Message(
    EndTxnMarker,
    "coordinator_epoch" / Int32,
    versions="0",
)

LAYOUTS: dict[int, Message[EndTxnMarker]] = {
    0: END_TXN_MARKER_V0,
}
EndTxnMarker.layouts = LAYOUTS
