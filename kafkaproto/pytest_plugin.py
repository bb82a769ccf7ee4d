"""The pytest plugin: fixtures with clusters, and the last requests in the report of a failed test.

`kafka_cluster` and `kafka_async_cluster` start a fresh cluster for each test; that of `kafka_async_cluster` runs in the test's own event loop.
`kafka_broker` is one broker for the whole session. `kafkaproto.testing.cluster_fixture` makes fixtures of other scopes. The plugin registers itself
on install and imports the broker only when a fixture is used, so that other test suites pay nothing for it.
"""

from __future__ import annotations

import inspect
import sys
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Unpack

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterator, Mapping

    from kafkaproto.broker.testing.handle import Handle
    from kafkaproto.broker.testing.options import Options, Topics

MARKER = "kafka(brokers=1, topics=None, config=None, ...): the arguments of `kafkaproto.testing.cluster` for kafka_cluster and kafka_async_cluster"
FRESH = ("kafka_cluster", "kafka_async_cluster")
"""The names of the fixtures that start a new cluster for each test. Only these take arguments from the marker `kafka`."""


LoopScope = Literal["function", "class", "module", "package", "session"]
LOOP_SCOPES: tuple[LoopScope, ...] = ("function", "class", "module", "package", "session")
"""The possible scopes of pytest-asyncio's event loops. Each instance of a scope, such as each module, has its own loop."""
_IN_LOOP = "_kafka_async_cluster_in_loop_of_"
_WITH_ANYIO = "_kafka_async_cluster_with_anyio"
_LASTING: weakref.WeakSet[Handle] = weakref.WeakSet()
"""The clusters of `kafka_broker` and of fixtures made by `cluster_fixture`. The marker `kafka` of a test cannot change their arguments."""
_CLUSTERS = pytest.StashKey[dict[str, "Handle"]]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if config.pluginmanager.hasplugin("asyncio"):
        import pytest_asyncio

        for scope in LOOP_SCOPES:
            globals()[_IN_LOOP + scope] = pytest_asyncio.fixture(_new_fresh_in_loop(), loop_scope=scope)
    if config.pluginmanager.hasplugin("anyio"):
        globals()[_WITH_ANYIO] = pytest.fixture(_new_fresh_in_loop())


def pytest_collection_finish(session: pytest.Session) -> None:
    """Import the broker's request handlers before the first test, so that no client waits for imports.

    Does nothing if no test of this run uses a cluster.
    """
    fixtures = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if fixtures.intersection((*FRESH, "kafka_broker")) and not session.config.option.collectonly:
        from kafkaproto.broker.testing.warming import load_now

        load_now()


def _testing() -> Any:
    import kafkaproto.broker.testing as testing

    return testing


def _remember(request: pytest.FixtureRequest, fixture: str, cluster: Handle) -> None:
    """Store a cluster under its fixture's name in the pytest node (test, class, module, package or session) for which it runs.

    So the report of a failed test can show the last requests to the cluster, even if another fixture has failed.
    """
    request.node.stash.setdefault(_CLUSTERS, {})[fixture] = cluster


def _marked(request: pytest.FixtureRequest, make: Any) -> Any:
    """Return the cluster that `make` creates with the arguments of the test's markers `kafka`.

    make: the function that creates a cluster, `kafkaproto.testing.cluster` or `async_cluster`. If markers of the test, its class and its module give
    the same argument, the marker closest to the test decides.
    """
    arguments: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("kafka"))):
        marker_arguments = inspect.signature(make).bind_partial(*marker.args, **marker.kwargs).arguments
        arguments |= marker_arguments.pop("options", {}) | marker_arguments
    return make(**arguments)


@contextmanager
def _naming_the_marker(request: pytest.FixtureRequest) -> Iterator[None]:
    """Return a context manager in which a test's cluster is started. It names the marker `kafka` of the test in the error of a failed start.

    If the test has the marker, a TypeError, ValueError or KafkaError becomes a pytest.UsageError. All other errors are not changed.
    """
    from kafkaproto.broker.errors import KafkaError

    try:
        yield
    except (TypeError, ValueError, KafkaError) as error:
        if request.node.get_closest_marker("kafka") is None:
            raise
        raise pytest.UsageError(f"marker kafka of {request.node.nodeid}: {error}") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Raise pytest.UsageError for a test with the marker `kafka` if its fixtures do not create clusters with the marker's arguments."""
    yield
    _check_marker(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Raise pytest.UsageError if a test has the marker `kafka`, but requested with `getfixturevalue` a fixture that ignores the marker."""
    try:
        yield
    except Exception:  # it may fail because the cluster does not have the marker's arguments
        _check_marker(item)
        raise
    _check_marker(item)


def _check_marker(item: pytest.Item) -> None:
    """Raise pytest.UsageError if a test has the marker `kafka`, but uses a cluster that does not take its arguments from the marker.

    Examples are a cluster that tests share, and the cluster of a fixture that gives its own arguments.
    """
    if item.get_closest_marker("kafka") is None or "kafkaproto.broker.testing.handle" not in sys.modules:
        return
    clusters = dict(_clusters(item))
    for name, cluster in clusters.items():
        if cluster in _LASTING:
            raise pytest.UsageError(
                f"marker kafka of {item.nodeid}: the marker has no effect on the fixture {name}, whose cluster other tests share; "
                "use the fixture kafka_cluster instead, or give the arguments to cluster_fixture(...)"
            )
    if clusters and not set(FRESH) & {*getattr(item, "fixturenames", ()), *_values(item)}:
        raise pytest.UsageError(
            f"marker kafka of {item.nodeid}: the fixture {next(iter(clusters))} ignores the marker's arguments; "
            "use the fixture kafka_cluster instead"
        )


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Provide a fresh cluster for this test, a `kafkaproto.testing.TestCluster`.

    `@pytest.mark.kafka(brokers=3, topics={"orders": 4})` gives it the arguments of `kafkaproto.testing.cluster`.
    """
    with _naming_the_marker(request):
        cluster = _marked(request, _testing().cluster).start()
    _remember(request, "kafka_cluster", cluster)
    try:
        yield cluster
    finally:
        cluster.stop()


def _new_fresh_in_loop() -> Any:
    """Return a new asynchronous generator function that starts a cluster, yields it and stops it (fixture `kafka_async_cluster`).

    pytest-asyncio stores the scope of the event loop on the function. So each loop scope needs a function of its own.
    """

    async def fresh_in_loop(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
        with _naming_the_marker(request):
            cluster = await _marked(request, _testing().async_cluster).start()
        _remember(request, "kafka_async_cluster", cluster)
        try:
            yield cluster
        finally:
            await cluster.stop()

    return fresh_in_loop


@pytest.fixture
def kafka_async_cluster(request: pytest.FixtureRequest) -> Any:
    """Provide a fresh cluster in the loop of this test, a `kafkaproto.testing.AsyncTestCluster`. Needs pytest-asyncio or anyio.

    `@pytest.mark.kafka(...)` sets the options of this cluster, as it does for `kafka_cluster`.
    """
    manager = request.config.pluginmanager
    if not manager.hasplugin("asyncio") and not manager.hasplugin("anyio"):
        raise pytest.UsageError(
            "kafka_async_cluster needs a plugin that runs asynchronous tests: pip install pytest-asyncio"
        )
    if _runs_with_anyio(request):
        return request.getfixturevalue(_WITH_ANYIO)
    if manager.hasplugin("asyncio"):
        return request.getfixturevalue(_IN_LOOP + _loop_scope(request))
    raise pytest.UsageError(
        f"kafka_async_cluster needs an asynchronous test: mark {request.node.nodeid} with @pytest.mark.anyio, or use kafka_cluster"
    )


def _runs_with_anyio(request: pytest.FixtureRequest) -> bool:
    is_asyncio = (
        request.node.get_closest_marker("asyncio") is not None and _setting(request, "asyncio_mode") is not None
    )
    return not is_asyncio and "anyio_backend" in request.fixturenames


def _loop_scope(request: pytest.FixtureRequest) -> str:
    """Return the scope of the event loop in which pytest-asyncio runs a test.

    For a test without the marker `asyncio`, which pytest-asyncio does not run, return the default loop scope of asynchronous fixtures.
    """
    marker = request.node.get_closest_marker("asyncio")
    if marker is None:
        scope = _setting(request, "asyncio_default_fixture_loop_scope")
        return scope if scope in LOOP_SCOPES else "function"
    chosen = marker.kwargs.get("loop_scope") or marker.kwargs.get("scope")
    return chosen or _setting(request, "asyncio_default_test_loop_scope") or "function"


def _setting(request: pytest.FixtureRequest, name: str) -> Any:
    """Return a setting of pytest's configuration, or None if no plugin defines the setting."""
    try:
        return request.config.getini(name)
    except (KeyError, ValueError):
        return None


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> None:
    """Raise pytest.UsageError for an asynchronous fixture that uses kafka_async_cluster, but runs in another event loop than the cluster."""
    scope = getattr(fixturedef.func, "_loop_scope", None)  # of pytest-asyncio, around each asynchronous fixture
    if scope is None or fixturedef.scope != "function" or not _uses_async_cluster(fixturedef, request, set()):
        return
    if scope != (own := _loop_scope(request)):
        error = pytest.UsageError(
            f"fixture {fixturedef.argname} runs in the {scope} loop and kafka_async_cluster in the {own} loop of {request.node.nodeid}; "
            f'use @pytest_asyncio.fixture(loop_scope="{own}")'
        )
        # As pytest does for a fixture that fails: it tears down only fixtures with a result, and refuses to set up others twice.
        fixturedef.cached_result = (None, fixturedef.cache_key(request), (error, None))  # type: ignore[arg-type]
        raise error


def _uses_async_cluster(definition: Any, request: Any, seen: set[int]) -> bool:
    """Return whether a fixture requests kafka_async_cluster, itself or through other fixtures.

    definition: pytest's `FixtureDef` of the fixture. request: the fixture request of the test. seen: the ids of the definitions visited so far.
    """
    seen.add(id(definition))
    for name in definition.argnames:
        definitions = request._arg2fixturedefs.get(name)
        if definitions is None:  # requested with getfixturevalue
            definitions = request._fixturemanager.getfixturedefs(name, request.node) or ()
        if name == definition.argname:  # a fixture that requests its own name gets the one that it overrides
            definitions = definitions[: definitions.index(definition)]
        if not definitions or id(last_definition := definitions[-1]) in seen:
            continue
        is_ours = name == "kafka_async_cluster" and last_definition.func.__module__ == __name__
        if is_ours or _uses_async_cluster(last_definition, request, seen):
            return True
    return False


@pytest.fixture(scope="session")
def _kafka_session_cluster() -> Iterator[Any]:
    with _testing().cluster() as cluster:
        _LASTING.add(cluster)
        yield cluster


@pytest.fixture
def kafka_broker(request: pytest.FixtureRequest, _kafka_session_cluster: Any) -> Any:
    """Provide the broker that all tests of the session share, reset for this test.

    A reset removes topics, groups, quotas, changed settings and the journal (the cluster's record of requests and events). If tests have moved the
    broker's clock forward, a reset sets it to the real time again.
    """
    _kafka_session_cluster.reset()
    _remember(request, "kafka_broker", _kafka_session_cluster)
    return _kafka_session_cluster


def cluster_fixture(
    scope: Literal["session", "package", "module", "class", "function"] = "module",
    brokers: int = 1,
    topics: Topics | None = None,
    config: Mapping[str, object] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    **options: Unpack[Options],
) -> Any:
    """Return a pytest fixture with a cluster that runs for the whole scope. The other arguments are those of `kafkaproto.testing.cluster`.

    `orders = cluster_fixture("module", brokers=3, topics={"orders": 4})` in a test file makes the fixture `orders` of its tests.
    A test that needs a clean cluster calls `reset()` on it. A test that uses this fixture with the marker `kafka` fails, because the marker cannot
    change the cluster's arguments.
    """
    from kafkaproto.broker.testing.arguments import check_choice

    check_choice("scope", scope, ("session", "package", "module", "class", "function"), "module")
    new_cluster = _testing().cluster(brokers, topics, config, host=host, port=port, **options)

    @pytest.fixture(scope=scope)
    def fixture(request: pytest.FixtureRequest) -> Iterator[Any]:
        with new_cluster as running:
            _LASTING.add(running)
            _remember(request, str(request.fixturename), running)
            yield running

    return fixture


# ---- the report of a failed test -----------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None and _is_ours(call.excinfo):
        report.longrepr = f"pytest.UsageError: {call.excinfo.value}"
        return report
    if report.failed and "kafkaproto.broker.testing.handle" in sys.modules:
        report.sections += [(f"Kafka requests of {name}", _requests(cluster)) for name, cluster in _clusters(item)]
    return report


def _is_ours(excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
    """Return whether an error reports a wrong use of this plugin's fixtures or marker. Such an error is shown without a traceback."""
    is_raised_here = excinfo.traceback[-1].frame.f_globals.get("__name__") == __name__
    return is_raised_here and isinstance(excinfo.value, pytest.UsageError)


def _clusters(item: pytest.Item) -> Iterator[tuple[str, Handle]]:
    """Yield (fixture name, cluster) for each cluster that a test's fixtures have started, without duplicates.

    After the teardown of the test, the clusters have stopped, but can still report their last requests.
    """
    from kafkaproto.broker.testing.handle import Handle

    yielded_ids: set[int] = set()
    values = _values(item)
    fixture_names = {*getattr(item, "fixturenames", ()), *values}
    remembered = {
        name: cluster
        for node in item.listchain()
        for name, cluster in node.stash.get(_CLUSTERS, {}).items()
        if node is item or name in fixture_names
    }
    fixtures: dict[str, Any] = {**remembered, **values, **getattr(item, "funcargs", {})}
    for name, value in fixtures.items():
        if isinstance(value, Handle) and value.has_started and id(value) not in yielded_ids:
            yielded_ids.add(id(value))
            yield name, value


def _values(item: pytest.Item) -> dict[str, Any]:
    """Return the values of a test's fixtures by name, also of those that it requested with `getfixturevalue`. Empty after teardown."""
    definitions: dict[str, Any] = getattr(getattr(item, "_request", None), "_fixture_defs", {})
    results = {name: definition.cached_result for name, definition in definitions.items()}
    return {name: result[0] for name, result in results.items() if result is not None and result[2] is None}


def _requests(cluster: Handle) -> str:
    """Return a text with the last requests that a cluster received. If several clients sent them, a second part lists them client by client."""
    try:
        requests = cluster.explain() or "(no requests)"
        clients = {request.client_id for request in cluster.journal.requests()}
        return requests if len(clients) < 2 else f"{requests}\n\n{cluster.conversations()}"
    except Exception as error:  # noqa: BLE001 - the test's own failure matters more
        return f"(not available: {error!r})"
