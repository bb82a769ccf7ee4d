"""The one Spark session of a worker, with its real Kafka connector: whoever needs one has this."""

from __future__ import annotations

import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from kafkaproto.pipeline import session
from tests.rules import module_markers

pytest_plugins = ("kafkaproto.conformance.plugin",)
# A failing assert in a helper shows its values, as in a test module.
pytest.register_assert_rewrite("tests.support")
# How long an example takes says how busy the machine is, and nothing of the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore a module whose `pytestmark` has a marker that `-m "not MARKER"` leaves out: it may import packages that are not installed."""
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    left_out = set(re.findall(r"\bnot (\w+)", config.option.markexpr or ""))
    return True if left_out and left_out & module_markers(collection_path) else None


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Fails, and says what to install, when pyspark or a JDK is missing: nothing is skipped."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        pytest.fail("pyspark is missing: run `make test-all`, or pip install -e '.[dev,spark]'")
    scratch = session.scratch_folder()
    with tempfile.TemporaryFile("w+") as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own; what the tests warn of is theirs
        try:
            made = session.start("kafkaproto tests", scratch, log)
        except Exception:  # noqa: BLE001 - whatever it is, what the JVM said belongs to it
            log.seek(0)
            pytest.fail("Spark did not start; what it wrote last:\n" + "".join(log.readlines()[-40:]))
        yield made
        made.stop()
    shutil.rmtree(scratch, ignore_errors=True)
