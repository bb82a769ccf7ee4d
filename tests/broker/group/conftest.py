from __future__ import annotations

import pytest

from tests.support.broker.group_bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
