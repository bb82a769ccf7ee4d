from __future__ import annotations

import pytest

from tests.broker.group.group_bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
