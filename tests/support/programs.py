"""Programs that tests run in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROKERS = 3
"""The number of brokers that `recorded_brokers` starts."""


@contextmanager
def program(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a program, and wait for its end after the block. If the block fails, the program is killed first.

    `subprocess.Popen` alone would wait for ever if the test ended before it stopped the program, for example by its timeout, which pytest-timeout
    raises only once. options: those of Popen. The output is text, and standard output is a pipe.
    """
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


@contextmanager
def recorded_brokers(release: str, config: Mapping[str, str], trace: Path) -> Iterator[str]:
    """Run three brokers in a process of their own, which record their traffic. Yields their addresses, separated by commas.

    In the process of a test, the brokers would wait whenever a client library, or the start of a program, holds the interpreter.
    trace: the folder for the recorded traffic, which is complete after the block.
    """
    command = [sys.executable, "-m", "kafkaproto.cli", "broker", "--port", "0", "--brokers", str(BROKERS)]
    command += ["--release", release, "--trace", str(trace), "--log-level", "error"]
    command += [word for name, value in config.items() for word in ("-c", f"{name}={value}")]
    with program(command) as process:
        assert process.stdout is not None
        yield ",".join(process.stdout.readline().strip() for _ in range(BROKERS))
        process.terminate()
