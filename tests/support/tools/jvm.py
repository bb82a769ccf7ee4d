"""Kafka's command-line tools of one version, run in one Java process, because starting a process for each command takes seconds."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.rivals.jars import tools_jars

JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
LIMIT_SECONDS = 120


class Output(NamedTuple):
    """What a tool printed, and its exit code."""

    code: int
    out: str
    err: str


class ToolsProcess:
    """A Java process that runs the tools of one version of Kafka. Use as a context manager."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        program = Path(__file__).with_name("Tools.java")
        command = ["java", *JVM, "-cp", f"{tools_jars(self.version)}/*", str(program)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end()
        self._log.close()

    def _end(self) -> None:
        self._process.kill()
        with suppress(BrokenPipeError):
            self._process.communicate()

    def run(self, main_class: str, arguments: Sequence[str], stdin: str = "", stopped_after_s: float = 0) -> Output:
        """Run a tool with these arguments. Raises AssertionError with what the process printed if the tool ends the process or takes too long.

        The next tool then runs in a new process. stopped_after_s: when threads that the tool leaves running are stopped.
        """
        if self._process.poll() is not None:
            self._end()
            self._process = self._started()
        assert self._process.stdin is not None and self._process.stdout is not None
        question = json.dumps([main_class, list(arguments), stdin, int(stopped_after_s * 1000)])
        watchdog = threading.Timer(LIMIT_SECONDS, self._process.kill)
        watchdog.start()
        try:
            self._process.stdin.write(question.encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        finally:
            watchdog.cancel()
        assert line, (
            f"{main_class} {' '.join(arguments)} ended the process or took {LIMIT_SECONDS} s\n{self._printed()}"
        )
        return Output(**json.loads(line))

    def _printed(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-3000:]
