"""Changes of in-sync replicas that leaders propose, collected and given to the controller once per turn (`AlterPartitionManager`).

Must never know why a leader proposes a change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkaproto.broker.metadata.controller import Controller


class IsrChanges:
    """One image for all that leaders decide in a turn: a broker that comes back joins thousands of partitions at once.

    soon: runs a function later in the same turn.
    """

    def __init__(self, controller: Controller, soon: Callable[[Callable[[int], None]], None]) -> None:
        self._controller = controller
        self._soon = soon
        self._proposed: dict[tuple[str, int], set[int]] = {}

    def propose(self, topic: str, index: int, isr: Sequence[int]) -> None:
        """Propose `isr` for a partition, as a change of its published in-sync replicas.

        The replicas that join and leave are added to what was proposed for the partition in this turn.
        """
        state = self._controller.image.partition(topic, index)
        if state is None:
            return
        if not self._proposed:
            self._soon(self._publish)
        published, wanted = set(state.isr), set(isr)
        proposed = self._proposed.get((topic, index), published)
        self._proposed[(topic, index)] = (proposed | (wanted - published)) - (published - wanted)

    def _publish(self, now_ms: int) -> None:
        proposed, self._proposed = self._proposed, {}
        self._controller.change_isr(proposed)
