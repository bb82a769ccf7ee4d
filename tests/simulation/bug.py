"""One injected bug: a small change of one function of the broker, in effect while it is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

Original = Callable[..., Any]


class Bug(NamedTuple):
    """An injected bug: `owner.name` is replaced by what `changed` makes of the original."""

    owner: Any
    name: str
    changed: Callable[[Original], Any]

    @contextmanager
    def injected(self) -> Iterator[None]:
        with patch.object(self.owner, self.name, self.changed(getattr(self.owner, self.name))):
            yield
