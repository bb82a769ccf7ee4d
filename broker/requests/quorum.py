"""The checks of requests that change the voters of the controller quorum (KIP-853)."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkaproto.broker.config.features import KRAFT_VERSION
from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node

NO_DIRECTORY = bytes(16)


def check_voter(
    own_cluster_id: str, cluster_id: str | None, voter_id: int, directory_id: bytes, add_or_remove: str
) -> None:
    """Check the cluster id and the voter in a request to add or remove a voter, in Kafka's order (AD-27).

    own_cluster_id: the id of this cluster. cluster_id: the id in the request; None accepts any cluster. voter_id, directory_id: the voter in the
    request. add_or_remove: "Add" or "Remove", for the error message. Raises KafkaError INCONSISTENT_CLUSTER_ID (104) if the cluster ids differ, and
    INVALID_REQUEST (42) if the voter id is negative or the directory id is zero.
    """
    if cluster_id is not None and cluster_id != own_cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f'The given id "{cluster_id}" doesn\'t match the cluster id "{own_cluster_id}"',
        )
    if voter_id < 0 or directory_id == NO_DIRECTORY:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{add_or_remove} voter request didn't include a valid voter")


@dataclass(frozen=True, slots=True)
class Voter:
    """A controller in the quorum: its id and the id of its directory. `str()` formats it like Kafka's `ReplicaKey`, for error messages."""

    voter_id: int
    directory_id: bytes

    def __str__(self) -> str:
        directory = base64.urlsafe_b64encode(self.directory_id).decode().rstrip("=")
        return f"ReplicaKey(id={self.voter_id}, directoryId={directory})"


def own_voter(node: Node) -> Voter:
    """Return the cluster's only controller as a voter. The directory id is zero unless the voters of the quorum can change."""
    image = node.image
    directory = _directory_id(node, "the controller") if has_dynamic_quorum(node) else NO_DIRECTORY
    return Voter(min(image.brokers), directory)


def observer_directory(node: Node, broker_id: int) -> bytes:
    """Return the id of the directory in which a broker of the cluster of `node` would store its copy of the metadata log (AD-25)."""
    return _directory_id(node, f"broker {broker_id}")


def _directory_id(node: Node, owner: str) -> bytes:
    """Return the directory id of `owner`, derived from the cluster id, so that it is the same after a restart with a data directory."""
    return hashlib.sha256(f"directory of {owner} of {node.image.cluster_id}".encode()).digest()[:16]


def has_dynamic_quorum(node: Node) -> bool:
    """Return whether the voters of the quorum can change: from release 4.0 on, if `kraft.version` has level 1. In 3.9 this level has no effect."""
    return node.is_release_4 and KRAFT_VERSION in node.image.features


def static_quorum(verb: str) -> KafkaError:
    """Return the error for a request to change the voters of a quorum whose voters cannot change. verb: "adding" or "removing"."""
    return KafkaError(
        ErrorCode.UNSUPPORTED_VERSION,
        f"Cluster doesn't support {verb} voter because the kraft.version feature is 0",
    )
