"""Forced throttles: a test sets throttle times directly, such as 700 ms for the next three Produce responses to client X.

A rule selects the requests to throttle, and can limit their number; `hits` counts the requests throttled so far. Rules are plain data that can be
written as JSON (`to_json`, `from_json`). This module does not depend on quotas, sockets or the content of requests.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from kafkaproto.api import APIS

INT32_MAX = 2**31 - 1
_API_KEYS = {info.name: int(key) for key, info in APIS.items()}


def api_key(name: str) -> int:
    """Return the key of an API name such as "Produce". Raises ValueError for an unknown name."""
    if name not in _API_KEYS:
        close = difflib.get_close_matches(str(name), _API_KEYS, 1)
        hint = f"did you mean {close[0]!r}?" if close else "for example 'Produce', 'Fetch', 'ListOffsets'"
        raise ValueError(f"unknown API {name!r}; {hint}")
    return _API_KEYS[name]


@dataclass(slots=True)
class ForcedThrottle:
    """A rule that throttles the first `times` requests that match its API, client id, user and broker, each for `throttle_ms`.

    If `times` is None, the rule throttles all matching requests until it is cancelled. Raises ValueError, naming the field, for an invalid value.
    """

    throttle_ms: int
    """The throttle time in milliseconds, 1 to 2^31 - 1."""
    api: str | None = None
    """The name of the API, such as "Produce"; None matches every API."""
    client_id: str | None = None
    """The client id of the request, "" for a client without one; None matches every client id."""
    user: str | None = None
    """The user of the connection; None matches every user."""
    broker_id: int | None = None
    """The broker that receives the request; None matches every broker."""
    times: int | None = None
    """The number of requests that this rule throttles; None for all matching requests until the rule is cancelled."""
    hits: int = field(default=0, init=False)
    """The number of requests that this rule has throttled so far."""
    rule_id: int = field(default=0, init=False)
    """The number of the rule, counted from 1 in each cluster; 0 before the rule is added to a cluster."""

    def __str__(self) -> str:
        return f"forced by rule {self.rule_id}"

    def __post_init__(self) -> None:
        if not _is_count(self.throttle_ms):
            raise ValueError(f"throttle_ms must be 1 to {INT32_MAX} (got {self.throttle_ms!r}); for example 700")
        if self.times is not None and not _is_count(self.times):
            raise ValueError(f"times must be at least 1, or None for always (got {self.times!r}); for example 3")
        if self.api is not None:
            api_key(self.api)
        for name, kind in (("client_id", str), ("user", str), ("broker_id", int)):
            value = getattr(self, name)
            if value is not None and type(value) is not kind:
                raise ValueError(
                    f"{name} must be {'a str' if kind is str else 'a broker id'}, or None for any (got {value!r})"
                )

    @property
    def is_spent(self) -> bool:
        """Return whether the rule has throttled as many requests as `times` allows; always False if `times` is None."""
        return self.times is not None and self.hits >= self.times

    def to_json(self) -> dict[str, Any]:
        """Return all fields by name. The fields `hits` and `rule_id` are included, although `from_json` does not accept them."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ForcedThrottle:
        """Return a rule. values: maps field names to values. Raises ValueError for an unknown field, and for a missing or invalid value."""
        allowed = [f.name for f in fields(cls) if f.init]
        unknown = sorted(set(values) - set(allowed))
        if unknown:
            raise ValueError(f'unknown field "{unknown[0]}" of a forced throttle; known are {", ".join(allowed)}')
        if "throttle_ms" not in values:
            raise ValueError(
                'throttle_ms is missing; it is the throttle time in milliseconds, for example {"api": "Produce", "throttle_ms": 700}'
            )
        return cls(**values)


class ForcedThrottles:
    """The active rules for forced throttles, in the order in which they were added. Only the first rule that matches a request is applied."""

    def __init__(self) -> None:
        self.active: list[ForcedThrottle] = []
        """The rules that are neither used up nor cancelled. While this list is empty, a request costs only one check for forced throttles."""
        self._ids = itertools.count(1)

    def add(self, rule: ForcedThrottle) -> ForcedThrottle:
        """Activate a rule and give it the next number of this cluster. Raises ValueError for a rule that was added before."""
        if rule.rule_id:
            raise ValueError(f"forced throttle {rule.rule_id} was already added to a cluster; create a new one")
        rule.rule_id = next(self._ids)
        self.active.append(rule)
        return rule

    def cancel(self, rule: ForcedThrottle) -> None:
        """Deactivate a rule. Does nothing if the rule is used up or was cancelled before."""
        if rule in self.active:
            self.active.remove(rule)

    def clear(self) -> None:
        self.active.clear()

    def apply(self, api_key: int, client_id: str | None, user: str, broker_id: int) -> ForcedThrottle | None:
        """Return the first active rule that matches a request, and count the request in the `hits` of this rule. Returns None if no rule matches."""
        for rule in self.active:
            if _fits(rule, api_key, client_id, user, broker_id):
                rule.hits += 1
                if rule.is_spent:
                    self.active.remove(rule)
                return rule
        return None


def _fits(rule: ForcedThrottle, api_key: int, client_id: str | None, user: str, broker_id: int) -> bool:
    return (
        (rule.api is None or _API_KEYS[rule.api] == api_key)
        and (rule.client_id is None or rule.client_id == (client_id or ""))
        and (rule.user is None or rule.user == user)
        and (rule.broker_id is None or rule.broker_id == broker_id)
    )


def _is_count(value: object) -> bool:
    return type(value) is int and 1 <= value <= INT32_MAX
