"""Programs that tests run do not outlive them."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.programs import program

SLEEPER = "import time; print('started', flush=True); time.sleep(1000)"


def fail_beside_a_sleeping_program(processes: list[subprocess.Popen[str]]) -> None:
    with program([sys.executable, "-c", SLEEPER]) as process:
        processes.append(process)
        assert process.stdout is not None and process.stdout.readline() == "started\n"
        raise ZeroDivisionError


def test_context_manager_named_program_kills_the_process_if_its_block_raises() -> None:
    processes: list[subprocess.Popen[str]] = []
    with pytest.raises(ZeroDivisionError):
        fail_beside_a_sleeping_program(processes)
    assert processes[0].returncode == -signal.SIGKILL


def test_context_manager_named_program_keeps_the_exit_status_of_an_ended_process() -> None:
    with program([sys.executable, "-c", "raise SystemExit(7)"]) as process:
        pass
    assert process.returncode == 7
