"""Kafka's command-line tools, run from the jars against this broker."""

from __future__ import annotations

import subprocess

from benchmarks.rivals.jars import tools_jars

JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
LIMIT_SECONDS = 60


def run_tool(main_class: str, *arguments: str) -> str:
    """Run a tool and return its standard output. Fails with the complete output if the tool fails."""
    completed = _run(main_class, arguments)
    assert completed.returncode == 0, f"{main_class} {arguments}\n{completed.stdout}\n{completed.stderr}"
    return completed.stdout


def run_failing_tool(main_class: str, *arguments: str) -> str:
    """Run a tool that is expected to fail and return its complete output."""
    completed = _run(main_class, arguments)
    assert completed.returncode != 0, f"{main_class} {arguments}\n{completed.stdout}\n{completed.stderr}"
    return completed.stdout + completed.stderr


def _run(main_class: str, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    command = ["java", *JVM, "-cp", f"{tools_jars()}/*", main_class, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
