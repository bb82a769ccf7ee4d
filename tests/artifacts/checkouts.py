"""Programs of an old commit, which run in a process of their own with the code of a checkout."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running_broker(checkout: Path, options: list[str], end: signal.Signals) -> Iterator[str]:
    """Run the broker of a checkout, yield its address, and end the process with the signal `end`."""
    with subprocess.Popen(
        [sys.executable, "-m", "broker", *options],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(end)


def output_of(checkout: Path, *command: str) -> str:
    """Run Python with the code of a checkout and return its output."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    completed = subprocess.run(
        [sys.executable, *command], cwd=checkout, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return completed.stdout
