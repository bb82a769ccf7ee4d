"""The APIs and versions that a broker of Apache Kafka 3.9 offers, whatever its settings."""

from __future__ import annotations

OFFERED_BY_3_9 = {
    0: (0, 11), 1: (0, 17), 2: (0, 9), 3: (0, 12), 8: (0, 9), 9: (0, 9), 10: (0, 6), 11: (0, 9), 12: (0, 4), 13: (0, 5),
    14: (0, 5), 15: (0, 5), 16: (0, 5), 17: (0, 1), 18: (0, 4), 19: (0, 7), 20: (0, 6), 21: (0, 2), 22: (0, 5), 23: (0, 4),
    24: (0, 5), 25: (0, 4), 26: (0, 4), 27: (0, 1), 28: (0, 4), 29: (0, 3), 30: (0, 3), 31: (0, 3), 61: (0, 0), 65: (0, 0), 66: (0, 1),
    32: (0, 4), 33: (0, 2), 34: (0, 2), 35: (0, 4), 36: (0, 2), 37: (0, 3), 38: (0, 3), 39: (0, 2), 40: (0, 2), 41: (0, 3),
    42: (0, 2), 43: (0, 2), 44: (0, 1), 45: (0, 0), 46: (0, 0), 47: (0, 0), 48: (0, 1), 49: (0, 1), 50: (0, 0), 51: (0, 0), 60: (0, 1),
    55: (0, 2), 57: (0, 1), 64: (0, 0), 74: (0, 0), 75: (0, 0), 80: (0, 0), 81: (0, 0),
}  # fmt: skip
"""Maps an API key to (lowest version, highest version) that a broker of Kafka 3.9 offers in ApiVersions (M-10)."""
OFFERED_IF_ENABLED = frozenset({68, 69, 71, 72})
"""The APIs that a broker offers only with certain settings or from a certain release on: KIP-848 groups (GN-1) and client telemetry (AD-10)."""
NOT_IN_3_9 = frozenset({76, 77, 78, 79, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92})
"""The APIs of share groups and streams groups. Kafka offers them from release 4 on, but 3.9 does not; this project does not serve them."""
