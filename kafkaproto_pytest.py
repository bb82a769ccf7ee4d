"""The pytest plugin: fixtures `kafka_cluster` (fresh per test) and `kafka_broker` (one per session and xdist worker).

Registers itself on install and imports `broker` only when a fixture is used, so that it costs other test suites nothing.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKER = "kafka(brokers=1, topics=None, config=None, ...): how the fixture kafka_cluster is made; arguments of broker.testing.cluster"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def _testing() -> Any:
    # By place and not by trying: somebody else's `broker` may fail to import, and with an editable install even `broker.testing` can be
    # found under it.
    ours = Path(__file__).resolve().parent / "broker"
    spec = importlib.util.find_spec("broker")
    found = [Path(place).resolve() for place in (spec and spec.submodule_search_locations) or ()]
    if ours not in found:
        place = found[0] if found else spec and spec.origin
        raise pytest.UsageError(
            f"the fixture needs kafkaproto's package 'broker', but 'broker' is {place}: another package of that name comes first on "
            "sys.path; rename it, or run pytest from another folder"
        )
    import broker.testing as testing

    return testing


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A fresh cluster for this test: `broker.testing.TestCluster`. `@pytest.mark.kafka(brokers=3, topics={"t": 4})` says how."""
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
