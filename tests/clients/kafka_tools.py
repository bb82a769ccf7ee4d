"""Kafka's own command-line tools, run from the jars against our broker."""

from __future__ import annotations

import subprocess

from tests.oracle.jars import tools_jars

JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
LIMIT_SECONDS = 60


def run_tool(main_class: str, *arguments: str) -> str:
    """What a tool writes to its standard output. Fails with all that it wrote when it fails."""
    command = ["java", *JVM, "-cp", f"{tools_jars()}/*", main_class, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, f"{main_class} {arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout
