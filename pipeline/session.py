"""A Spark session with or without Spark's Kafka connector, configured for short runs on few cores.

If `spark-submit` started this process, the session runs on the cluster that `spark-submit` chose, with the settings of `spark-submit`. The connector
is downloaded through `spark.jars.packages` into a cache outside the source tree, so a second run downloads nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import kafkaproto

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTED_PYSPARK = "4.0.0"
"""The version of pyspark, and of Spark's Kafka connector, that this project is tested with; `constraints.txt` pins it."""


RESULT_SETTINGS = {"spark.sql.session.timeZone": "UTC"}
"""The settings of Spark on which values in tables and reports depend. Every session gets them, even one that `spark-submit` has configured."""
SUBMIT_VARIABLE = "PYSPARK_GATEWAY_PORT"
"""The environment variable that `spark-submit` sets for the Python process that it starts. If it is set, the JVM already runs."""
LAST_OUTPUT_LINES = 20
FIRST_ERROR_LINES = 12
EXIT_WAIT_S = 0.5
_UNRESOLVED = re.compile(r"\[((?:unresolved dependency|download failed): .*)\]")
"""Matches the message that Ivy, which downloads jars for Spark, prints if a package or one of its jars cannot be downloaded."""
CODE_CACHE = "240m"
"""The size of the JVM's code cache, enough for all queries of a report.

By default, a JVM that has only the C1 compiler uses 48 MB. A cache of that size is full after about thirty queries; the JVM then recompiles
constantly and can crash.
"""


def cache_folder() -> Path:
    """Return the folder of downloaded jars: `$KAFKAPROTO_CACHE`, or `~/.cache/kafkaproto`."""
    return Path(os.environ.get("KAFKAPROTO_CACHE") or Path.home() / ".cache" / "kafkaproto")


def connector_of(pyspark_version: str) -> str:
    """Return the Maven coordinates of Spark's Kafka connector for a pyspark release. Connector and pyspark have the same version."""
    return f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark_version}"


CONNECTOR = connector_of(TESTED_PYSPARK)
"""The Maven coordinates of Spark's Kafka connector for the version of pyspark that this project is tested with."""


def installed_connector() -> str:
    """Return the Maven coordinates of Spark's Kafka connector for the installed pyspark."""
    import pyspark

    return connector_of(pyspark.__version__)


def is_connector_cached() -> bool:
    """Return True if the cache folder has the jar of Spark's Kafka connector for the installed pyspark, so that no download is needed."""
    name, version = installed_connector().split(":")[1:]
    return any((cache_folder() / "spark-ivy" / "jars").glob(f"*{name}-{version}.jar"))


def settings(scratch: Path, connector: bool = True) -> dict[str, str]:
    """Return the settings of a local session that starts quickly.

    scratch: folder for Spark's temporary files. connector: whether to load Spark's Kafka connector.
    """
    ivy = str(cache_folder() / "spark-ivy")
    return (
        ({"spark.jars.packages": installed_connector(), "spark.jars.ivy": ivy} if connector else {})
        | RESULT_SETTINGS
        | {
            "spark.executorEnv.PYTHONPATH": str(Path(kafkaproto.__file__).resolve().parents[1]),
            "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize={CODE_CACHE}",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            # Spark keeps the plans of finished queries for its UI even without one.
            "spark.sql.ui.retainedExecutions": "10",
            "spark.ui.retainedJobs": "50",
            "spark.ui.retainedStages": "50",
            "spark.ui.showConsoleProgress": "false",
            "spark.default.parallelism": "2",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.stopTimeout": "20s",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.local.dir": str(scratch / "local"),
            "spark.cleaner.periodicGC.interval": "5min",
            "spark.log.level": "ERROR",
        }
    )


def scratch_folder() -> Path:
    """Create a temporary folder for checkpoints and shuffles, and return it.

    The folder is in /dev/shm (memory) if the machine has it, because checkpoints and shuffles consist of many small files.
    """
    in_memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="kafkaproto-", dir=in_memory if os.access(in_memory, os.W_OK) else None))


def start(name: str, scratch: Path, log: TextIO, connector: bool = True) -> SparkSession:
    """Start a session and return it; the caller must `stop()` it.

    name: the application's name. scratch: folder for Spark's temporary files. log: an open file that receives all output of the JVM, unless
    `spark-submit` started the JVM. connector: whether to load Spark's Kafka connector. Raises ConnectorMissing if the connector cannot be downloaded.
    """
    from pyspark.sql import SparkSession

    if SUBMIT_VARIABLE in os.environ:
        return _with(SparkSession.builder, RESULT_SETTINGS).getOrCreate()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName(name)
    try:
        with _errors_into(log):
            return _with(builder, settings(scratch, connector)).getOrCreate()
    except Exception:
        log.seek(0)
        if connector and (unresolved := _UNRESOLVED.search(log.read())):
            raise ConnectorMissing(installed_connector(), unresolved[1]) from None
        raise


def _with(builder: SparkSession.Builder, settings: dict[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


@contextmanager
def local_session(name: str, connector: bool = False) -> Iterator[SparkSession]:
    """Yield a session on the cores of this machine, and hide the output of the JVM unless it fails.

    name: the application's name. connector: whether to load Spark's Kafka connector. Data that does not fit into memory goes to disk, because the
    shuffles of a large trace can exceed the machine's memory. Raises JvmGone, with the last output of the JVM, if the JVM exits too early, and
    ConnectorMissing if the connector cannot be downloaded.
    """
    with (
        tempfile.TemporaryDirectory(prefix="kafkaproto-", ignore_cleanup_errors=True) as scratch,
        tempfile.TemporaryFile("w+") as log,
    ):
        spark = start(name, Path(scratch), log, connector)
        gateway = spark.sparkContext._gateway
        jvm = getattr(gateway, "proc", None)  # None if the driver was submitted
        try:
            yield spark
        except Exception as error:
            if jvm is None or not _has_exited(jvm):
                raise
            log.seek(0)
            raise JvmGone(jvm.returncode, log.readlines()) from error
        finally:
            if jvm is None or jvm.poll() is None:
                spark.stop()


class ConnectorMissing(RuntimeError):
    """Raised if Spark's Kafka connector, or a jar that it needs, cannot be downloaded.

    connector: the Maven coordinates of the connector. reason: the error message of Ivy, which downloads jars for Spark.
    """

    def __init__(self, connector: str, reason: str) -> None:
        super().__init__(
            f"the Kafka connector {connector} cannot be resolved ({reason}); the tested version is pyspark {TESTED_PYSPARK} with {CONNECTOR}: "
            f"pip install pyspark=={TESTED_PYSPARK}"
        )


class JvmGone(OSError):
    """Raised if Spark's JVM exited while it was in use.

    status: exit status of the JVM. lines: output of the JVM. The error's message contains the first error in the output with its stack trace, which
    is usually the cause, and the last lines.
    """

    def __init__(self, status: int, lines: list[str]) -> None:
        before = max(len(lines) - LAST_OUTPUT_LINES, 0)
        first_error = next((place for place, line in enumerate(lines[:before]) if " ERROR " in line), before)
        first = lines[first_error : min(first_error + FIRST_ERROR_LINES, before)]
        text = "".join([*first, *lines[before:]]).strip() or "no output"
        super().__init__(
            f"Spark's JVM exited with status {status}, perhaps because it ran out of memory (to give it more: PYSPARK_SUBMIT_ARGS='--driver-memory "
            f"8g pyspark-shell'); its output: {text}"
        )


def _has_exited(jvm: subprocess.Popen[bytes]) -> bool:
    """Return True if the JVM has exited, or exits within half a second (`EXIT_WAIT_S`). The JVM closes its connections a moment before it exits."""
    with suppress(subprocess.TimeoutExpired):
        jvm.wait(EXIT_WAIT_S)
    return jvm.returncode is not None


@contextmanager
def _errors_into(log: TextIO) -> Iterator[None]:
    """Return a context in which standard output and standard error go to the file `log`.

    A JVM that is started in the context inherits both. The file therefore also receives the many lines that Spark and Ivy (which downloads jars)
    print, and their errors.
    """
    saved = [(number, os.dup(number)) for number in (1, 2)]
    try:
        for number, _ in saved:
            os.dup2(log.fileno(), number)
        yield
    finally:
        for number, copy in saved:
            os.dup2(copy, number)
            os.close(copy)
