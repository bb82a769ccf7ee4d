"""The suite on our own broker and on a real Kafka, as a card.

usage: python -m tests.conformance [pytest arguments]      (make conformance)
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parent / "test_suite.py"
OPTIONS = ("-q", "-r", "fE", "-p", "no:xdist", "-p", "kafkaproto.conformance.card")

if __name__ == "__main__":
    sys.exit(pytest.main([str(SUITE), *OPTIONS, *sys.argv[1:]]))
