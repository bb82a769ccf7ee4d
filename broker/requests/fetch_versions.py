"""The versions with which Fetch changed, as far as its handler and the way of its response must know."""

FIRST_WITH_THROTTLE_TIME = 1
FIRST_WITH_SESSIONS = 7
"""Error code and session id at the top of the response (KIP-227)."""
FIRST_FLEXIBLE = 12
FIRST_BY_ID = 13
"""Topic ids instead of names (KIP-516)."""
FIRST_WITH_REPLICA_STATE = 15
FIRST_WITH_ENDPOINTS = 16
"""The response may name the nodes of new leaders (KIP-951)."""
