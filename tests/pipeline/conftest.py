"""One Spark session for the tests of traces and captures, without the connector."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline import session


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    """Where a worker has a session already that is used; else the JVM ends with the package, as the next one wants its connector from
    the start."""
    try:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
    except ImportError:
        pytest.fail("pyspark is missing: run `make test`, or pip install -e '.[dev,spark]'")
    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    scratch = session.scratch_folder()
    with tempfile.TemporaryFile("w+") as log, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = session.start("kafkaproto tests", scratch, log, connector=False)
        yield made
        made.stop()
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
        SparkContext._gateway = SparkContext._jvm = None
    shutil.rmtree(scratch, ignore_errors=True)
