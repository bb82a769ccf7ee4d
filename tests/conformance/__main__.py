"""The suite on our own broker and on a real Kafka, as a card.

usage: python -m tests.conformance [pytest arguments]      (make conformance)
"""

from __future__ import annotations

import sys
from pathlib import Path

from kafkaproto.conformance import card

if __name__ == "__main__":
    sys.exit(card.run([str(Path(__file__).parent / "test_suite.py"), *sys.argv[1:]]))
