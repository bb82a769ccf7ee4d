"""One Spark session, with Spark's real Kafka connector or without it, set for short runs on few cores; where `spark-submit` has started this
process, that of the cluster which it names, with the settings that it was given.

The connector comes through `spark.jars.packages` into a cache outside the source tree: the second run downloads nothing.
"""

from __future__ import annotations

import os
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

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
"""The one 4.x whose jars can all be had; its version must be that of pyspark."""


RESULTS = {"spark.sql.session.timeZone": "UTC"}
"""What tables and answers depend on, wherever they are made."""
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by `spark-submit` for the Python that it starts, whose JVM is there already."""
LINES_OF_JVM = 20
LINES_OF_FIRST_ERROR = 12
GOING_S = 0.5
CODE_CACHE = "240m"
"""For the machine code of all queries of a report. A JVM that compiles in one step has 48 MB, which are full after some thirty of them: then it
compiles again and again, and what finds no room at all ends it."""


def cache_folder() -> Path:
    """Where jars are kept: `$KAFKAPROTO_CACHE`, else `~/.cache/kafkaproto`."""
    return Path(os.environ.get("KAFKAPROTO_CACHE") or Path.home() / ".cache" / "kafkaproto")


def fetched() -> bool:
    """Whether the connector lies in the cache already."""
    name, version = CONNECTOR.split(":")[1:]
    return any((cache_folder() / "spark-ivy" / "jars").glob(f"*{name}-{version}.jar"))


def settings(scratch: Path, connector: bool = True) -> dict[str, str]:
    """What makes a session of this machine start and answer quickly. scratch: a folder for what Spark writes."""
    packages = {"spark.jars.packages": CONNECTOR, "spark.jars.ivy": str(cache_folder() / "spark-ivy")}
    return (
        (packages if connector else {})
        | RESULTS
        | {
            "spark.executorEnv.PYTHONPATH": str(Path(kafkaproto.__file__).resolve().parents[1]),
            "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize={CODE_CACHE}",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
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
    """For checkpoints and shuffles: in memory where there is such a place, as they are many small files."""
    in_memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="kafkaproto-", dir=in_memory if os.access(in_memory, os.W_OK) else None))


def start(name: str, scratch: Path, log: TextIO, connector: bool = True) -> SparkSession:
    """The session; `stop()` it. log: a real file that takes what the JVM says from beginning to end, which a
    driver that was submitted leaves in its own output.

    Raises RuntimeError when this pyspark is not the one that the connector belongs to.
    """
    import pyspark
    from pyspark.sql import SparkSession

    if SUBMITTED in os.environ:
        return _with(SparkSession.builder, RESULTS).getOrCreate()
    wanted = CONNECTOR.rsplit(":", 1)[1]
    if connector and pyspark.__version__ != wanted:
        raise RuntimeError(
            f"the connector {CONNECTOR} needs pyspark {wanted}, here is {pyspark.__version__}: pip install pyspark=={wanted}"
        )
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").appName(name)
    with _errors_into(log):
        return _with(builder, settings(scratch, connector)).getOrCreate()


def _with(builder: SparkSession.Builder, settings: dict[str, str]) -> SparkSession.Builder:
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder


@contextmanager
def local_session(name: str, connector: bool = False) -> Iterator[SparkSession]:
    """A session of this machine's cores, with Spark's Kafka connector or without; what the JVM says stays out of sight unless it fails.

    What does not fit into its memory lies on disk: a large trace leaves more in shuffles than a machine has memory. Raises JvmGone, with the
    last that the JVM said, when it has ended before the work did.
    """
    with (
        tempfile.TemporaryDirectory(prefix="kafkaproto-", ignore_cleanup_errors=True) as scratch,
        tempfile.TemporaryFile("w+") as log,
    ):
        spark = start(name, Path(scratch), log, connector)
        gateway = spark.sparkContext._gateway
        jvm = getattr(gateway, "proc", None)  # none where the driver was submitted
        try:
            yield spark
        except Exception as error:
            if jvm is None or not _gone(jvm):
                raise
            log.seek(0)
            raise JvmGone(jvm.returncode, log.readlines()) from error
        finally:
            if jvm is None or jvm.poll() is None:
                spark.stop()


class JvmGone(OSError):
    """Spark's JVM ended while it was needed. status: its exit status; said: all its lines, of which the first error, with where it was, and the
    last are told: what comes first is mostly the cause."""

    def __init__(self, status: int, said: list[str]) -> None:
        before = max(len(said) - LINES_OF_JVM, 0)
        begins = next((place for place, line in enumerate(said[:before]) if " ERROR " in line), before)
        first = said[begins : min(begins + LINES_OF_FIRST_ERROR, before)]
        text = "".join([*first, *said[before:]]).strip() or "it said nothing"
        super().__init__(
            f"Spark's JVM ended with status {status}, perhaps for want of memory (more of it: PYSPARK_SUBMIT_ARGS='--driver-memory 8g "
            f"pyspark-shell'); what it said: {text}"
        )


def _gone(jvm: subprocess.Popen[bytes]) -> bool:
    """Its connections end a moment before it does."""
    with suppress(subprocess.TimeoutExpired):
        jvm.wait(GOING_S)
    return jvm.returncode is not None


@contextmanager
def _errors_into(log: TextIO) -> Iterator[None]:
    """A JVM that is started here inherits standard output and error: Ivy and Spark are talkative."""
    kept = [(number, os.dup(number)) for number in (1, 2)]
    try:
        for number, _ in kept:
            os.dup2(log.fileno(), number)
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
