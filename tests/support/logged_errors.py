"""Fixtures that fail a socket test if asyncio logs an error of a callback or a lost task."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def errors_expected() -> list[str]:
    """Return the texts of errors that a test provokes on purpose."""
    return []


@pytest.fixture(autouse=True)
def no_errors(caplog: pytest.LogCaptureFixture, errors_expected: list[str]) -> Iterator[Callable[[], None]]:
    yield lambda: None
    errors = [
        record.getMessage()
        for phase in ("setup", "call")
        for record in caplog.get_records(phase)
        if record.levelno >= logging.ERROR and record.name.split(".")[0] in ("asyncio", "kafkaproto")
    ]
    assert [text for text in errors if not any(expected in text for expected in errors_expected)] == []
