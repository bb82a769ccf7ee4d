"""Which subjects a run has, and one running cluster of each kind at a time.

A test module says its profile with `PROFILE = "small"`; without one it is "default". A test takes the fixture `subject`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.conformance.foreign import brokers_at, check_profile
from tests.support.conformance.kinds import KINDS, RIVALS
from tests.support.conformance.subjects import Foreign, Subject


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance")
    group.addoption("--bootstrap", help="HOST:PORT of a running cluster; else ours and a real Kafka are started")
    group.addoption(
        "--semantics", default="kafka", choices=("kip", "kafka"), help="what that cluster should do (kafka)"
    )
    group.addoption(
        "--subjects",
        default=",".join(KINDS),
        help=f"which of {', '.join(KINDS | RIVALS)} to start ({', '.join(KINDS)})",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one profile stand together, so that each cluster is started once."""
    places = [i for i, item in enumerate(items) if "subject" in getattr(item, "fixturenames", ())]
    found = sorted((items[i] for i in places), key=lambda item: getattr(item.module, "PROFILE", "default"))  # type: ignore[attr-defined]
    for i, item in zip(places, found, strict=True):
        items[i] = item


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "subject" not in metafunc.fixturenames:
        return
    config = metafunc.config
    foreign = config.getoption("--bootstrap", None)
    kinds = [foreign] if foreign else (config.getoption("--subjects", None) or ",".join(KINDS)).split(",")
    profile = getattr(metafunc.module, "PROFILE", "default")
    marks = {"real": (pytest.mark.java, pytest.mark.timeout(300)), "ours-kafka": (pytest.mark.slow,)}  # in real time
    values = [pytest.param((kind, profile), id=kind, marks=marks.get(kind, ())) for kind in kinds]
    metafunc.parametrize("running", values, indirect=True, scope="module")


@pytest.fixture(scope="session")
def subjects() -> Iterator[dict[tuple[str, str], Subject]]:
    """(kind, profile) to what runs. At most one cluster of a kind runs at a time."""
    running: dict[tuple[str, str], Subject] = {}
    yield running
    for subject in running.values():
        subject.stop()


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, subjects: dict[tuple[str, str], Subject]) -> Subject:
    kind, profile = request.param
    if (kind, profile) not in subjects:
        for other in [key for key in subjects if key[0] == kind]:
            subjects.pop(other).stop()
        if made := (KINDS | RIVALS).get(kind):
            subjects[kind, profile] = made(profile)
        else:
            addresses = [(host, int(port)) for host, _, port in (one.rpartition(":") for one in kind.split(","))]
            semantics = request.config.getoption("--semantics")
            subjects[kind, profile] = Foreign(brokers_at(addresses, semantics), semantics)
    return subjects[kind, profile]


@pytest.fixture
def subject(running: Subject, request: pytest.FixtureRequest) -> Iterator[Subject]:
    """The cluster under test."""
    if isinstance(running, Foreign):
        check_profile(running, getattr(request.module, "PROFILE", "default"))
    yield running
    running.close_connections()
    running.restore()
