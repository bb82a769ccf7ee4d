"""The pytest plugin: fixtures `kafka_cluster` (fresh per test) and `kafka_broker` (one per session and xdist worker).

It registers itself on install and imports the broker only when a fixture is used, so that other test suites pay nothing for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = "kafka(brokers=1, topics=None, config=None, ...): how the fixture kafka_cluster is made; arguments of kafkaproto.testing.cluster"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def _testing() -> Any:
    import kafkaproto.testing as testing

    return testing


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A fresh cluster for this test: `kafkaproto.testing.TestCluster`. `@pytest.mark.kafka(brokers=3, topics={"t": 4})` says how."""
    marker = request.node.get_closest_marker("kafka")
    arguments, options = ((), {}) if marker is None else (marker.args, marker.kwargs)
    with _testing().cluster(*arguments, **options) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def _kafka_session_cluster() -> Iterator[Any]:
    with _testing().cluster() as cluster:
        yield cluster


@pytest.fixture
def kafka_broker(_kafka_session_cluster: Any) -> Any:
    """The session's one broker, as if just started: topics, groups, quotas, settings, journal and clock offset are gone."""
    _kafka_session_cluster.reset()
    return _kafka_session_cluster
