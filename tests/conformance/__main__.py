"""Run the conformance suite on this broker and on a real Kafka, and print one line for each rule.

All arguments except -h and --help go to pytest, for example `-k quotas` or `-x`;
`python -m pytest --help` lists them. `make conformance` runs this program.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parent / "test_suite.py"
IMPORTED = "ignore:Module already imported so cannot be rewritten; tests:pytest.PytestAssertRewriteWarning"
"""Ignores that `tests` is imported before pytest, which lists it among the files of this package's plugin if the checkout has its metadata."""
OPTIONS = ("-q", "-r", "fE", "-p", "no:xdist", "-p", "kafkaproto.conformance.card", "-W", IMPORTED)

if __name__ == "__main__":
    _, arguments = argparse.ArgumentParser(
        prog="python -m tests.conformance",
        usage="%(prog)s [-h] [PYTEST OPTION]...",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    ).parse_known_args()
    sys.exit(pytest.main([str(SUITE), *OPTIONS, *arguments]))
