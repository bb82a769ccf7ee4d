"""Programs that tests run do not outlive them."""

from __future__ import annotations

import signal
import sys

import pytest

from tests.support.programs import program


def test_program_is_killed_if_the_test_fails_before_it_stops_the_program() -> None:
    with (
        pytest.raises(ZeroDivisionError),
        program([sys.executable, "-c", "import time; print('started', flush=True); time.sleep(1000)"]) as process,
    ):
        assert process.stdout is not None and process.stdout.readline() == "started\n"
        raise ZeroDivisionError
    assert process.returncode == -signal.SIGKILL


def test_program_that_ends_by_itself_keeps_its_exit_status() -> None:
    with program([sys.executable, "-c", "raise SystemExit(7)"]) as process:
        pass
    assert process.returncode == 7
