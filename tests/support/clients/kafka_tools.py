"""Kafka's own command-line tools, run from the jars against our broker."""

from __future__ import annotations

import subprocess

from benchmarks.rivals.jars import tools_jars

JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
LIMIT_SECONDS = 60


def run_tool(main_class: str, *arguments: str) -> str:
    """What a tool writes to its standard output. Fails with all that it wrote when it fails."""
    done = _run(main_class, arguments)
    assert done.returncode == 0, f"{main_class} {arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_tool_in_vain(main_class: str, *arguments: str) -> str:
    """All that a tool writes that fails."""
    done = _run(main_class, arguments)
    assert done.returncode != 0, f"{main_class} {arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def _run(main_class: str, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = ["java", *JVM, "-cp", f"{tools_jars()}/*", main_class, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
