"""The kinds of subjects that conformance tests can run against."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.conformance.real_kafka import RealKafka
from tests.support.conformance.rivals import Kfake, LibrdkafkaMock
from tests.support.conformance.subjects import Ours, OursManual, Subject
from tests.support.conformance.virtual import Virtual

KINDS: dict[str, Callable[[str], Subject]] = {
    "virtual-kafka": lambda profile: Virtual(profile, "kafka"),
    "virtual-kip": lambda profile: Virtual(profile, "kip"),
    "ours-kafka": lambda profile: Ours(profile, "kafka"),
    "ours-kafka-manual": lambda profile: OursManual(profile, "kafka"),
    "ours-kip-manual": lambda profile: OursManual(profile, "kip"),
    "real": RealKafka,
}
RIVALS: dict[str, Callable[[str], Subject]] = {"kfake": Kfake, "librdkafka-mock": LibrdkafkaMock}
"""Beside them on request: `--subjects ours-kafka,real,kfake,librdkafka-mock`."""
