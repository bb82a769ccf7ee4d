"""A local Spark session: where Spark stores spilled data, and the error when its JVM is lost."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaproto.pipeline.session import CONNECTOR, ConnectorMissing, JvmGone, connector_of

DIES = """
import os, signal
from kafkaproto.pipeline.session import local_session

with local_session("dies") as spark:
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    print(sum(pool.getUsage().getMax() for pool in pools if "Code" in pool.getName()) >> 20, "MB")
    print(spark.sparkContext.getConf().get("spark.local.dir"), flush=True)
    os.kill(spark.sparkContext._gateway.proc.pid, signal.SIGKILL)
    spark.range(10).count()
"""

OTHER_PYSPARK = """
import pyspark
pyspark.__version__ = "4.0.12345"
from kafkaproto.pipeline.live.__main__ import main
from kafkaproto.testing import cluster

with cluster(topics={"__journal": 1}) as c:
    raise SystemExit(main([c.bootstrap, "--checkpoint", "live", "--once"]))
"""


@pytest.mark.spark
@pytest.mark.timeout(120)
def test_error_after_a_killed_spark_jvm_says_how_to_give_the_jvm_more_memory() -> None:
    completed = subprocess.run([sys.executable, "-c", DIES], capture_output=True, text=True, check=False)
    assert completed.returncode == 1
    assert (
        "JvmGone: Spark's JVM exited with status -9, perhaps because it ran out of memory (to give it more: PYSPARK_SUBMIT_ARGS="
        in completed.stderr
    )
    code, shuffles = completed.stdout.splitlines()
    assert code == "240 MB"
    assert shuffles.endswith("/local") and not shuffles.startswith("/dev/shm")


def test_error_after_a_jvm_crash_contains_the_first_error_and_the_last_output_lines() -> None:
    message = str(JvmGone(52, ["one\n", "java.lang.OutOfMemoryError: Java heap space\n"]))
    assert "status 52" in message and message.endswith("its output: one\njava.lang.OutOfMemoryError: Java heap space")
    assert str(JvmGone(-9, [])).endswith("no output")
    many = ["WARN a\n", "26/11/22 ERROR the cause\n", "caused by this\n", *(f"at place {n}\n" for n in range(100))]
    message = str(JvmGone(50, many))
    assert "output: 26/11/22 ERROR the cause\ncaused by this\nat place 0\n" in message
    assert "place 9\nat place 80\n" in message and message.endswith("at place 99")


def test_maven_coordinates_of_the_spark_connector_end_with_the_pyspark_version() -> None:
    assert connector_of("4.1.2") == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.2"


def test_error_for_a_missing_spark_connector_suggests_a_pyspark_version_to_install() -> None:
    message = str(ConnectorMissing(connector_of("4.9.0"), "unresolved dependency: x#y;4.9.0: not found"))
    assert "\n" not in message
    assert connector_of("4.9.0") in message and CONNECTOR in message
    version = re.search(r"pip install pyspark==(\S+)$", message)
    assert version and connector_of(version[1]) == CONNECTOR


@pytest.mark.spark
@pytest.mark.timeout(120)
def test_spark_job_prints_a_single_error_line_if_its_kafka_connector_is_unavailable(tmp_path: Path) -> None:
    """No release has this version, so the connector is unavailable with and without a network."""
    environment = {**os.environ, "KAFKAPROTO_CACHE": str(tmp_path / "cache")}
    completed = subprocess.run(
        [sys.executable, "-c", OTHER_PYSPARK],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 2, completed.stderr
    assert completed.stderr.count("\n") == 1
    assert completed.stderr.startswith(
        f"kafkaproto live: the Kafka connector {connector_of('4.0.12345')} cannot be resolved ("
    )
    assert completed.stderr.endswith("pip install pyspark==4.0.0\n")
