"""How many objects of a class are alive: what is forgotten must not stay in memory."""

from __future__ import annotations

import gc


class Living:
    """Counts the objects of a class that were made after this was, and are still alive."""

    def __init__(self, kind: type) -> None:
        gc.collect()
        self._kind = kind
        self._before = self._alive()

    def count(self) -> int:
        gc.collect()
        return self._alive() - self._before

    def _alive(self) -> int:
        return sum(isinstance(one, self._kind) for one in gc.get_objects())
