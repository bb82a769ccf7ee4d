"""A session of this machine: where it puts what does not fit into memory, and what is said when its JVM is gone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kafkaproto.pipeline.session import JvmGone

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


@pytest.mark.spark
@pytest.mark.timeout(120)
def test_a_jvm_that_is_killed_is_told_with_what_to_do_and_it_had_room_for_code_and_shuffles_on_disk() -> None:
    done = subprocess.run([sys.executable, "-c", DIES], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert (
        "JvmGone: Spark's JVM ended with status -9, perhaps for want of memory (more of it: PYSPARK_SUBMIT_ARGS="
        in done.stderr
    )
    code, shuffles = done.stdout.splitlines()
    assert code == "240 MB"
    assert shuffles.endswith("/local") and not shuffles.startswith("/dev/shm")


def test_its_first_error_and_its_last_words_are_kept() -> None:
    told = str(JvmGone(52, ["one\n", "java.lang.OutOfMemoryError: Java heap space\n"]))
    assert "status 52" in told and told.endswith("what it said: one\njava.lang.OutOfMemoryError: Java heap space")
    assert str(JvmGone(-9, [])).endswith("it said nothing")
    many = ["WARN a\n", "26/11/22 ERROR the cause\n", "caused by this\n", *(f"at place {n}\n" for n in range(100))]
    told = str(JvmGone(50, many))
    assert "said: 26/11/22 ERROR the cause\ncaused by this\nat place 0\n" in told
    assert "place 9\nat place 80\n" in told and told.endswith("at place 99")
