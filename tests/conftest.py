"""The Spark session of a test process, with its real Kafka connector, shared by all its tests."""

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
# Failing asserts in helpers show their values, as in test modules.
pytest.register_assert_rewrite("tests.support")
# The duration of an example depends on the load of the machine, not on the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore a module whose `pytestmark` has a marker excluded by `-m "not MARKER"`: it may import packages that are not installed."""
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    left_out = set(re.findall(r"\bnot (\w+)", config.option.markexpr or ""))
    return True if left_out and left_out & module_markers(collection_path) else None


@pytest.hookimpl(optionalhook=True)  # `-p no:xdist` does without it
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Replace `--dist loadfile` by a scheduler that also divides the files that take minutes."""
    from tests.support.scheduling import Scheduling  # it must not be imported before its asserts are registered

    return Scheduling(config, log) if config.option.dist == "loadfile" else None


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Start Spark. If pyspark or a JDK is missing, the test fails and names the package to install; nothing is skipped."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        pytest.fail("pyspark is missing: run `make test-all`, or pip install -e '.[dev,spark]'")
    from kafkaproto.pipeline.trace.report.making import FAST_SETTINGS

    scratch = session.scratch_folder()
    with tempfile.TemporaryFile("w+") as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own warnings; warnings of the tests stay enabled
        try:
            with pytest.MonkeyPatch.context() as environment:
                # One JVM runs the queries of hundreds of tests; the default is 1 GB.
                environment.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 2g pyspark-shell")
                spark_session = session.start("kafkaproto tests", scratch, log)
        except Exception:  # noqa: BLE001 - any error is reported together with the output of the JVM
            log.seek(0)
            pytest.fail("Spark did not start; what it wrote last:\n" + "".join(log.readlines()[-40:]))
        # The tables of tests are small: Spark needs more CPU to generate code for a query than to run it.
        for name, value in FAST_SETTINGS.items():
            spark_session.conf.set(name, value)
        yield spark_session
        spark_session.stop()
    shutil.rmtree(scratch, ignore_errors=True)
