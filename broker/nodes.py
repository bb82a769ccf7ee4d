"""The brokers of a cluster by id."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node


class Nodes(Collection["Node"]):
    """The brokers of a cluster, ordered by id: `nodes[broker_id]` is one of them. Their ids are consecutive numbers (CF-26).

    ids: all ids, also those of stopped brokers.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._by_id = {node.broker_id: node for node in nodes}
        self.ids = range(min(self._by_id), max(self._by_id) + 1)

    def __getitem__(self, broker_id: int) -> Node:
        """Return the broker with the id `broker_id`. Raises KeyError for an unknown id."""
        return self._by_id[broker_id]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, node: object) -> bool:
        return node in self._by_id.values()

    def running(self, broker_id: int) -> Node | None:
        """Return the broker with the id `broker_id`; None if there is no such broker, or if it does not run."""
        node = self._by_id.get(broker_id)
        return node if node is not None and node.running else None
