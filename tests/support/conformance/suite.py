"""The suite of `kafkaproto.conformance`, collected below one file of `tests/`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaproto.conformance.plugin import modules


class Suite(pytest.File):
    """A file that represents the whole suite. Its tests are called ``FILE::test_module.py::test_name[subject]``."""

    def collect(self) -> Iterator[pytest.Module]:
        for path in modules():
            yield pytest.Module.from_parent(self, path=path, nodeid=f"{self.nodeid}::{path.name}")
