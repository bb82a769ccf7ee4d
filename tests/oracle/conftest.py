"""One Java process per Kafka release for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, clients_jar, kafka_jars
from tests.support.oracle.oracle import Conversions, Oracle, Releases


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    with Oracle(kafka_jars(KAFKA_VERSION)) as process:
        yield process


@pytest.fixture(scope="session")
def releases(oracle: Oracle) -> Iterator[Releases]:
    with Oracle(kafka_jars(NEWER_VERSION)) as newer:
        yield Releases((oracle, clients_jar(KAFKA_VERSION)), (newer, clients_jar(NEWER_VERSION)))


@pytest.fixture(scope="session")
def conversions() -> Iterator[Conversions]:
    with Conversions(kafka_jars(KAFKA_VERSION)) as process:
        yield process
