"""Requests that a broker rejects from every client: Kafka's brokers send them to controllers, or to each other in clusters with ZooKeeper.

The codec has no messages for these APIs, so each request is a constant: the bytes that Kafka 3.9.1 and 4.2.0 write for the default values of its
fields.
"""

from __future__ import annotations

from typing import NamedTuple


class InternalApi(NamedTuple):
    """An API whose requests no client may send.

    requests: (version of the request header, body as hexadecimal digits) of each version of the API that Kafka 3.9.1 or 4.2.0 has, from version 0 on.
    """

    key: int
    name: str
    requests: tuple[tuple[int, str], ...]

    def frame(self, version: int) -> bytes:
        """Return a request, header and body, without its length. The header names `version`.

        If the API does not have this version, the request has the fields of the latest version.
        """
        header_version, body = self.requests[version if 0 <= version < len(self.requests) else -1]
        header = self.key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + b"\0\0\0\7"
        if header_version > 0:
            header += b"\0\1c"  # the client id
        return header + b"\0" * (header_version > 1) + bytes.fromhex(body)


INTERNAL_APIS = (
    InternalApi(
        4,
        "LeaderAndIsr",
        (
            (1, "00000000000000000000000000000000"),
            (1, "00000000000000000000000000000000"),
            (1, "0000000000000000ffffffffffffffff0000000000000000"),
            (1, "0000000000000000ffffffffffffffff0000000000000000"),
            (2, "0000000000000000ffffffffffffffff010100"),
            (2, "0000000000000000ffffffffffffffff00010100"),
            (2, "0000000000000000ffffffffffffffff00010100"),
            (2, "000000000000000000ffffffffffffffff00010100"),
        ),
    ),
    InternalApi(
        5,
        "StopReplica",
        (
            (1, "00000000000000000000000000"),
            (1, "0000000000000000ffffffffffffffff0000000000"),
            (2, "0000000000000000ffffffffffffffff000100"),
            (2, "0000000000000000ffffffffffffffff0100"),
            (2, "000000000000000000ffffffffffffffff0100"),
        ),
    ),
    InternalApi(
        6,
        "UpdateMetadata",
        (
            (1, "00000000000000000000000000000000"),
            (1, "00000000000000000000000000000000"),
            (1, "00000000000000000000000000000000"),
            (1, "00000000000000000000000000000000"),
            (1, "00000000000000000000000000000000"),
            (1, "0000000000000000ffffffffffffffff0000000000000000"),
            (2, "0000000000000000ffffffffffffffff010100"),
            (2, "0000000000000000ffffffffffffffff010100"),
            (2, "000000000000000000ffffffffffffffff010100"),
        ),
    ),
    InternalApi(
        7,
        "ControlledShutdown",
        (
            (0, "00000000"),
            (1, "00000000"),
            (1, "00000000ffffffffffffffff"),
            (2, "00000000ffffffffffffffff00"),
        ),
    ),
    InternalApi(
        52,
        "Vote",
        (
            (2, "000100"),
            (2, "00ffffffff0100"),
            (2, "00ffffffff0100"),
        ),
    ),
    InternalApi(
        53,
        "BeginQuorumEpoch",
        (
            (1, "ffff00000000"),
            (2, "00ffffffff010100"),
        ),
    ),
    InternalApi(
        54,
        "EndQuorumEpoch",
        (
            (1, "ffff00000000"),
            (2, "00010100"),
        ),
    ),
    InternalApi(
        56,
        "AlterPartition",
        (
            (2, "00000000ffffffffffffffff0100"),
            (2, "00000000ffffffffffffffff0100"),
            (2, "00000000ffffffffffffffff0100"),
            (2, "00000000ffffffffffffffff0100"),
        ),
    ),
    InternalApi(58, "Envelope", ((2, "01010100"),)),
    InternalApi(
        59,
        "FetchSnapshot",
        (
            (2, "ffffffff7fffffff0100"),
            (2, "ffffffff7fffffff0100"),
        ),
    ),
    InternalApi(
        62,
        "BrokerRegistration",
        (
            (2, "00000000010000000000000000000000000000000001010100"),
            (2, "0000000001000000000000000000000000000000000101010000"),
            (2, "000000000100000000000000000000000000000000010101000100"),
            (2, "0000000001000000000000000000000000000000000101010001ffffffffffffffff00"),
            (2, "0000000001000000000000000000000000000000000101010001ffffffffffffffff00"),
        ),
    ),
    InternalApi(
        63,
        "BrokerHeartbeat",
        (
            (2, "00000000ffffffffffffffff0000000000000000000000"),
            (2, "00000000ffffffffffffffff0000000000000000000000"),
        ),
    ),
    InternalApi(67, "AllocateProducerIds", ((2, "00000000ffffffffffffffff00"),)),
    InternalApi(70, "ControllerRegistration", ((2, "000000000000000000000000000000000000000000010100"),)),
    InternalApi(73, "AssignReplicasToDirs", ((2, "00000000ffffffffffffffff0100"),)),
    InternalApi(82, "UpdateRaftVoter", ((2, "0100000000000000000000000000000000000000000000000001000000000000"),)),
)
