"""Collection of the in-sync replicas that leaders propose, to pass them to the controller together (`AlterPartitionManager`).

This module does not depend on why a leader proposes a change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kafkaproto.broker.metadata.controller import Controller


class IsrChanges:
    """Combines all ISR changes that leaders propose while the broker handles one request or timer (a turn) into one metadata image.

    A starting broker joins the in-sync replicas of thousands of partitions at once; an image for each would be slow. soon: a function that queues a
    callback to run later in the same turn.
    """

    def __init__(self, controller: Controller, soon: Callable[[Callable[[int], None]], None]) -> None:
        self._controller = controller
        self._soon = soon
        self._proposed: dict[tuple[str, int], set[int]] = {}

    def propose(self, topic: str, index: int, isr: Sequence[int]) -> None:
        """Propose `isr` as the new in-sync replicas of a partition.

        The replicas that join or leave, compared to the published in-sync replicas, are combined with the earlier proposals for the partition while
        the broker handles the same request or timer.
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
