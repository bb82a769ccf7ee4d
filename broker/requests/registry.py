"""Which handler serves which API. `register` fills the table; what a broker offers (`advertised`) is cut from it to its release."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.outcomes import Outcome

Handler = Callable[[Any, Any], Outcome | Delayed]
"""(exchange, request message) to the outcome, now or later."""
Failed = Callable[[Any, Any, int], Outcome]
"""(exchange, request message, error code) to the API's own error response."""
H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Registration:
    """One API: the versions that its handler really serves, and how it reports a failure of its own (W-7)."""

    api_key: int
    min_version: int
    max_version: int
    handler: Handler
    failed: Failed


REGISTRY: dict[int, Registration] = {}


def register(api_key: int, min_version: int, max_version: int, failed: Failed) -> Callable[[H], H]:
    """Decorate the handler of `api_key`. failed: the request's own error response, sent when the handler raises."""

    def note(handler: H) -> H:
        if api_key in REGISTRY:
            raise ValueError(f"api key {api_key} is registered twice")
        REGISTRY[api_key] = Registration(api_key, min_version, max_version, handler, failed)
        return handler

    return note


@functools.cache
def load_handlers() -> None:
    """Import every handler: each registers itself. A new API is a new file, nothing else.

    Costs some 50 ms once per process, so it waits for the first request, or for the idle moment after a start.
    """
    package = importlib.import_module("kafkaproto.broker.handlers")
    for module in pkgutil.iter_modules(package.__path__, "kafkaproto.broker.handlers."):
        importlib.import_module(module.name)


def advertised(release_ranges: Mapping[int, tuple[int, int]]) -> dict[int, Registration]:
    """Return what a broker offers: what is registered, cut to the versions of the release that it plays."""
    load_handlers()
    offered = {}
    for key, registration in sorted(REGISTRY.items()):
        low, high = release_ranges.get(key, (0, -1))
        low, high = max(low, registration.min_version), min(high, registration.max_version)
        if low <= high:
            offered[key] = Registration(key, low, high, registration.handler, registration.failed)
    return offered
