"""Maps APIs to handlers. `register` fills the table; `advertised` reduces it to the APIs and versions of a release."""

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
"""A function of (exchange, request message) that returns the outcome, or a `Delayed` that completes later."""
Failed = Callable[[Any, Any, int], Outcome]
"""A function of (exchange, request message, error code) that returns an error response of the request's API."""
H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Registration:
    """One API: the versions that its handler supports, and the function that makes its error response if the handler raises (W-7)."""

    api_key: int
    min_version: int
    max_version: int
    handler: Handler
    failed: Failed


REGISTRY: dict[int, Registration] = {}


def register(api_key: int, min_version: int, max_version: int, failed: Failed) -> Callable[[H], H]:
    """Return a decorator for the handler of `api_key`. failed: makes the API's own error response, sent when the handler raises."""

    def note(handler: H) -> H:
        if api_key in REGISTRY:
            raise ValueError(f"two handlers are registered for API key {api_key}")
        REGISTRY[api_key] = Registration(api_key, min_version, max_version, handler, failed)
        return handler

    return note


@functools.cache
def load_handlers() -> None:
    """Import every handler module, which registers its handler. So a new API needs only a new file.

    This takes some 50 ms once per process; therefore it is not done when this package is imported.
    """
    package = importlib.import_module("kafkaproto.broker.handlers")
    for module in pkgutil.iter_modules(package.__path__, "kafkaproto.broker.handlers."):
        importlib.import_module(module.name)


def advertised(release_ranges: Mapping[int, tuple[int, int]]) -> dict[int, Registration]:
    """Return the APIs that a broker offers: the registered ones, reduced to the versions of its release."""
    load_handlers()
    offered = {}
    for key, registration in sorted(REGISTRY.items()):
        low, high = release_ranges.get(key, (0, -1))
        low, high = max(low, registration.min_version), min(high, registration.max_version)
        if low <= high:
            offered[key] = Registration(key, low, high, registration.handler, registration.failed)
    return offered
