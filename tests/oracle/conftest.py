"""One Java process for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.jars import kafka_jars
from tests.oracle.oracle import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    with Oracle(kafka_jars()) as process:
        yield process
