"""Programs that tests run in processes of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


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
