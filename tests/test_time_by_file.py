"""The list of times by file at the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytest_plugins = ("pytester",)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_pytest_run_prints_the_time_of_each_test_file_with_the_slowest_file_first(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    slow = "import time, pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_slow(n): time.sleep(0.15)\n"
    pytester.makepyfile(test_fast="def test_fast(): ...\n", test_slow=slow)
    result = pytester.runpytest_subprocess("-p", "tests.time_by_file", "-n", workers)
    result.stdout.re_match_lines([r"=+ 0 s in tests, by file =+", r" +0\.3 s test_slow\.py", r" +0\.0 s test_fast\.py"])
