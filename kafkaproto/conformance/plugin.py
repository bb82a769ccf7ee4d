"""The pytest plugin of the conformance suite: its options, and the fixture `subject`, which is the cluster that a test checks.

A profile is a file of broker settings. A test module chooses one with `PROFILE = "small"`; the default is "default". A test suite that starts
clusters by itself returns the kinds of clusters, such as "this broker in virtual time" or "a real Kafka", from the hook `pytest_conformance_kinds`.
At any time at most one cluster of each kind runs.

The marker `releases` names the releases of Kafka to which a test applies, for example `releases(first="4.0")` or `releases(before="4.0")`. A module
can set the marker for all its tests with `pytestmark`. If the release of a kind of cluster is known in advance, the plugin does not collect tests
whose marker excludes the release. If a collected test nevertheless skips itself, the plugin reports it as failed, because its marker should have
excluded the release. If the cluster is given by its address, the plugin recognises the release by the API versions that the cluster offers, and skips
tests for other releases.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.conformance import needs, release_range
from kafkaproto.conformance.foreign import Foreign, brokers_at, check
from kafkaproto.conformance.options import slack_ms
from kafkaproto.conformance.semantics import AUTO, KAFKA, KIP, semantics_of
from kafkaproto.conformance.subject import SLACK_MS, Subject

FOLDER = Path(__file__).resolve().parent
MARKER = "rule(*numbers): the rules that the test proves (docs/rules of the repository)"


@dataclass(frozen=True)
class Kind:
    """A kind of cluster that a test run starts, such as a broker in virtual time.

    name: the name of the kind in test ids and reports. start: a function that takes the name of a profile (a file of broker settings), starts a
    cluster with these settings and returns the cluster. marks: pytest marks that are added to every test on clusters of this kind. release: the
    release of Kafka that the clusters behave like, such as "4.2"; None if it is not known in advance. left_out: the names of the test modules that do
    not run on this kind.
    """

    name: str
    start: Callable[[str], Subject]
    marks: Sequence[pytest.MarkDecorator] = ()
    release: str | None = None
    left_out: Collection[str] = ()


class Hooks:
    """The new pytest hooks that this plugin defines and calls. A test suite that starts its own clusters implements them in a conftest."""

    @pytest.hookspec(firstresult=True)
    def pytest_conformance_kinds(self, config: pytest.Config) -> Sequence[Kind] | None:
        """Return the kinds of clusters that the tests run on if the command line names no address; None to choose none.

        A test suite that starts clusters by itself implements this hook. If several implementations exist, the first result that is not None counts.
        """


def modules() -> list[Path]:
    """Return the paths of the conformance suite's test modules, sorted by name."""
    return sorted(FOLDER.glob("test_*.py"))


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption("--bootstrap", metavar="HOST:PORT", help="address of one broker of a running cluster")
    group.addoption(
        "--semantics",
        default=AUTO,
        choices=(AUTO, KIP, KAFKA),
        help="expect the behaviour of Kafka's code (kafka) or of its design documents (kip) where they differ (default: auto, ask the cluster)",
    )
    group.addoption(
        "--slack-ms",
        type=slack_ms,
        default=SLACK_MS,
        help=f"how many milliseconds later than expected a response may arrive (default: {SLACK_MS:.0f})",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.addinivalue_line("markers", needs.MARKER)
    config.addinivalue_line("markers", release_range.MARKER)
    if address := config.getoption("--bootstrap", None):
        addresses(address)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Remove the tests that do not apply to their kind of cluster, and sort the others by profile (file of broker settings).

    In this order, tests with the same profile follow each other, so the plugin starts each kind of cluster only once with each profile.
    """
    items[:] = [item for item in items if _applies(item)]
    places = [i for i, item in enumerate(items) if "running_cluster" in getattr(item, "fixturenames", ())]
    in_order = sorted((items[i] for i in places), key=lambda item: profile_of(item.getparent(pytest.Module)))
    for i, item in zip(places, in_order, strict=True):
        items[i] = item


def _applies(item: pytest.Item) -> bool:
    """Return whether a test must run on the kind of cluster that it was collected for; True for a test outside the conformance suite.

    A kind of cluster is, for example, this broker in virtual time, or a real Kafka 4.2. The test must run if its markers `releases` include the
    release of the kind, and the kind does not leave out the test's module.
    """
    kind = kind_of(item)
    if kind is None:
        return True
    if kind.release is not None and not release_range.of(item).includes(kind.release):
        return False
    return item.path.stem not in kind.left_out


def kind_of(item: pytest.Item) -> Kind | None:
    """Return the kind of cluster on which a test runs; None for a test of another suite."""
    kind = (
        item.callspec.params.get("running_cluster")
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else None
    )
    return kind if isinstance(kind, Kind) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a skipped test as failed if the release of its cluster is known in advance.

    A test that does not apply to a known release must exclude it with the marker `releases`, so that the test is not even collected.
    """
    report = yield
    kind = kind_of(item)
    if report.skipped and kind is not None and kind.release is not None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid}: skipped on {kind.name}, whose release {kind.release} is known; name the releases to which the test applies "
            f"with the marker releases: {reason}"
        )
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "running_cluster" not in metafunc.fixturenames:
        return
    config = metafunc.config
    address = config.getoption("--bootstrap", None)
    kinds: Sequence[Kind] = (
        [foreign(config, address)] if address else config.hook.pytest_conformance_kinds(config=config)
    )
    if not kinds:
        pytest.exit(
            "--bootstrap HOST:PORT is missing: the address of one broker of the cluster to test",
            pytest.ExitCode.USAGE_ERROR,
        )
    values = [pytest.param(kind, id=kind.name, marks=kind.marks) for kind in kinds]
    metafunc.parametrize("running_cluster", values, indirect=True, scope="module")


def addresses(text: str) -> list[tuple[str, int]]:
    """Return (host, port) for each `HOST:PORT` of a comma-separated list. Raises pytest.UsageError if an entry has another form."""
    parts = [address.rpartition(":") for address in text.split(",")]
    if not all(host and port.isdecimal() for host, _, port in parts):
        raise pytest.UsageError(f"--bootstrap must be HOST:PORT, for example localhost:9092 (got {text!r})")
    return [(host.strip("[]"), int(port)) for host, _, port in parts]


def foreign(config: pytest.Config, address: str) -> Kind:
    """Return a kind of cluster (see `Kind`) whose function `start` starts nothing, but connects to a cluster that already runs.

    address: the `HOST:PORT` of each broker, separated by commas; it is also the name of the kind.
    """
    semantics = config.getoption("--semantics")

    def start(_profile: str) -> Subject:
        subject = Foreign(brokers_at(addresses(address), semantics), semantics)
        subject.slack_ms = config.getoption("--slack-ms")
        if semantics == AUTO:
            subject.semantics = semantics_of(subject)
        return subject

    return Kind(address, start)


def profile_of(module: Any) -> str:
    """Return the name of the settings profile (a file of broker settings) that a test module requires: "default" unless it sets `PROFILE`."""
    return str(getattr(getattr(module, "obj", None), "PROFILE", "default"))


@pytest.fixture(scope="session")
def _running_clusters() -> Iterator[dict[tuple[str, str], Subject]]:
    """Yield a dict that maps (name of a `Kind` of cluster, name of a profile of broker settings) to the running cluster.

    The clusters are stopped at the end of the pytest session. The dict is empty at first. The fixture `running_cluster` starts clusters and adds them
    to the dict. Before it starts a cluster, it stops a cluster of the same kind with another profile.
    """
    running: dict[tuple[str, str], Subject] = {}
    yield running
    for subject in running.values():
        subject.stop()


@pytest.fixture(scope="module")
def running_cluster(request: pytest.FixtureRequest, _running_clusters: dict[tuple[str, str], Subject]) -> Subject:
    """Return a running cluster of the current test's kind, with the settings profile of the test's module. Starts the cluster if there is none."""
    kind: Kind = request.param
    profile = profile_of(request.node)
    if (kind.name, profile) not in _running_clusters:
        for other_key in [key for key in _running_clusters if key[0] == kind.name]:
            _running_clusters.pop(other_key).stop()
        _running_clusters[kind.name, profile] = kind.start(profile)
    return _running_clusters[kind.name, profile]


@pytest.fixture
def subject(running_cluster: Subject, request: pytest.FixtureRequest) -> Iterator[Subject]:
    """Yield the cluster under test. After the test, close its connections and start the brokers that the test stopped.

    Skips the test if the suite did not start the cluster and the cluster does not meet the requirements of the test.
    """
    if isinstance(running_cluster, Foreign):
        profile = profile_of(request.node.getparent(pytest.Module))
        running_cluster.need_release(release_range.of(request.node))
        check(running_cluster, profile, needs.needs_of(request.node, profile))
    yield running_cluster
    running_cluster.close_connections()
    running_cluster.restore()
