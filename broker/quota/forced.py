"""Forced throttles: what a test wants throttled, without any arithmetic ("the next three Produce answers to client-id X say 700 ms").

A rule is a selector, how often it may strike, and how often it has (`hits`). Plain data with names for a control port
(`to_json`, `from_json`). Must never know quotas, sockets or what a request says.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from kafkaproto.api import APIS

INT32_MAX = 2**31 - 1
_API_KEYS = {info.name: int(key) for key, info in APIS.items()}


def api_key(name: str) -> int:
    """The key of "Produce", "Fetch", … Raises ValueError for a name that is none."""
    if name not in _API_KEYS:
        raise ValueError(f"api={name!r} is no Kafka API; use for example 'Produce', 'Fetch', 'ListOffsets'")
    return _API_KEYS[name]


@dataclass(slots=True)
class ForcedThrottle:
    """Throttle each request that fits for `throttle_ms`, `times` times (None: until it is cancelled).

    api: its name ("Produce"); client_id, user, broker_id: who asks whom; None: any. throttle_ms: 1 to 2^31 - 1.
    hits: how often it has struck. rule_id: its number in its cluster, 0 before it is added to one.
    Raises ValueError, naming the field, for what cannot be.
    """

    throttle_ms: int
    api: str | None = None
    client_id: str | None = None
    user: str | None = None
    broker_id: int | None = None
    times: int | None = None
    hits: int = field(default=0, init=False)
    rule_id: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not _is_count(self.throttle_ms):
            raise ValueError(f"throttle_ms={self.throttle_ms!r}: allowed is 1 to {INT32_MAX}, for example 700")
        if self.times is not None and not _is_count(self.times):
            raise ValueError(f"times={self.times!r}: allowed is 1 or more, or None for always, for example 3")
        if self.api is not None:
            api_key(self.api)
        for name, kind in (("client_id", str), ("user", str), ("broker_id", int)):
            value = getattr(self, name)
            if value is not None and type(value) is not kind:
                raise ValueError(
                    f"{name}={value!r}: allowed is {'text' if kind is str else 'a broker id'}, or None for any"
                )

    @property
    def is_spent(self) -> bool:
        return self.times is not None and self.hits >= self.times

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> ForcedThrottle:
        """A rule from the names of its fields. Raises ValueError for an unknown field, a missing or a bad value."""
        allowed = [f.name for f in fields(cls) if f.init]
        unknown = sorted(set(given) - set(allowed))
        if unknown:
            raise ValueError(f"{unknown[0]}: no such field of a forced throttle; allowed are {', '.join(allowed)}")
        if "throttle_ms" not in given:
            raise ValueError(
                'throttle_ms is missing: how long to throttle, for example {"api": "Produce", "throttle_ms": 700}'
            )
        return cls(**given)


class ForcedThrottles:
    """The rules in force, asked in the order in which they were given: the first that fits strikes, alone."""

    def __init__(self) -> None:
        self.active: list[ForcedThrottle] = []
        """Empty on the path of everybody who forces nothing, who looks no further."""
        self._ids = itertools.count(1)

    def add(self, rule: ForcedThrottle) -> ForcedThrottle:
        """Put a rule in force, with the next number of this cluster. Raises ValueError for a rule that was added before."""
        if rule.rule_id:
            raise ValueError(f"forced throttle {rule.rule_id} was added to a cluster before; make a new one")
        rule.rule_id = next(self._ids)
        self.active.append(rule)
        return rule

    def cancel(self, rule: ForcedThrottle) -> None:
        """Idempotent; a spent rule may be cancelled too."""
        if rule in self.active:
            self.active.remove(rule)

    def clear(self) -> None:
        self.active.clear()

    def strike(self, api_key: int, client_id: str | None, user: str, broker_id: int) -> ForcedThrottle | None:
        """Return the rule that throttles this request, and count it; None if none does."""
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
