"""The APIs and versions of Apache Kafka 3.9, restricted to the APIs that this project serves."""

from __future__ import annotations

OFFERED_BY_3_9 = {
    0: (0, 11), 1: (0, 17), 2: (0, 9), 3: (0, 12), 8: (0, 9), 9: (0, 9), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13: (0, 5),
    14: (0, 5), 15: (0, 5), 16: (0, 5), 18: (0, 4), 19: (0, 7), 20: (0, 6), 21: (0, 2), 22: (0, 5), 23: (0, 4),
    24: (0, 5), 25: (0, 4), 26: (0, 4), 27: (0, 1), 28: (0, 4), 61: (0, 0), 65: (0, 0), 66: (0, 1),
    32: (0, 4), 37: (0, 3), 43: (0, 2), 44: (0, 1), 45: (0, 0), 46: (0, 0), 48: (0, 1), 49: (0, 1), 60: (0, 1),
}  # fmt: skip
"""Maps an API key to the lowest and highest version that Kafka 3.9 offers, for the APIs that this project serves (M-10)."""
