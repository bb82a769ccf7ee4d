"""The pytest plugin: fixtures `kafka_cluster` (fresh per test) and `kafka_broker` (one per session and xdist worker).

Registers itself on install and imports `broker` only when a fixture is used, so that it costs other test suites nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = "kafka(brokers=1, topics=None, config=None, ...): how the fixture kafka_cluster is made; arguments of broker.testing.cluster"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def _testing() -> Any:
    try:
        import broker.testing as testing
    except ImportError as error:
        import broker

        where = getattr(broker, "__file__", None) or list(getattr(broker, "__path__", ["?"]))[0]
        raise pytest.UsageError(
            f"the fixture needs kafkaproto's package 'broker', but 'broker' is {where}: another package of that name comes "
            "first on sys.path; rename it, or run pytest from another folder"
        ) from error
    return testing


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A fresh cluster for this test: `broker.testing.TestCluster`. `@pytest.mark.kafka(brokers=3, topics={"t": 4})` says how."""
    marker = request.node.get_closest_marker("kafka")
    with _testing().cluster(**({} if marker is None else marker.kwargs)) as cluster:
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
