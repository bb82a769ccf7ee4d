"""Names for the versions of Fetch that introduced a field or feature. The broker handles or encodes earlier versions differently."""

FIRST_WITH_THROTTLE_TIME = 1
FIRST_WITH_SESSIONS = 7
"""The first version of Fetch with error code and session id at the top of the response (KIP-227)."""
FIRST_FLEXIBLE = 12
FIRST_BY_ID = 13
"""The first version of Fetch with topic ids instead of names (KIP-516)."""
FIRST_WITH_REPLICA_STATE = 15
FIRST_WITH_ENDPOINTS = 16
"""The first version of Fetch whose response may contain the endpoints of new leaders (KIP-951)."""
