"""Collection of the in-sync replicas that leaders propose, to pass them to the controller together (`AlterPartitionManager`).

This module does not depend on why a leader proposes a change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkaproto.broker.metadata.controller import Controller


class IsrChanges:
    """Combines the ISR changes that leaders propose during one turn (the handling of one request or timer) into one new metadata image.

    A starting broker joins the in-sync replicas of thousands of partitions at once; a separate image for each partition would be slow. soon: a
    function that queues a callback to run later in the same turn.
    """

    def __init__(self, controller: Controller, soon: Callable[[Callable[[int], None]], None]) -> None:
        self._controller = controller
        self._soon = soon
        self._proposed: dict[tuple[str, int], set[int]] = {}

    def propose(self, topic: str, index: int, isr: Sequence[int]) -> None:
        """Propose `isr` as the new in-sync replicas of a partition.

        If the partition has an earlier proposal in the same turn (the handling of one request or timer), the two are combined: replicas that join in
        either proposal are added, and replicas that leave in either are removed.
        """
        state = self._controller.image.partition(topic, index)
        if state is None:
            return
        if not self._proposed:
            self._soon(self._publish)
        published, new_isr = set(state.isr), set(isr)
        proposed = self._proposed.get((topic, index), published)
        self._proposed[(topic, index)] = (proposed | (new_isr - published)) - (published - new_isr)

    def _publish(self, now_ms: int) -> None:
        proposed, self._proposed = self._proposed, {}
        self._controller.change_isr(proposed)
