"""The kinds of clusters that `tests/conformance` runs the suite on."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.plugin import Kind
from tests.support.conformance.ours import Ours, OursManual
from tests.support.conformance.real_kafka import NewerKafka, RealKafka
from tests.support.conformance.rivals import Kfake, LibrdkafkaMock
from tests.support.conformance.virtual import Virtual, VirtualNewer

DEFAULT = (
    Kind("virtual-kafka", lambda profile: Virtual(profile, "kafka")),
    Kind("virtual-kip", lambda profile: Virtual(profile, "kip")),
    Kind(
        "ours-kafka", lambda profile: Ours(profile, "kafka"), [pytest.mark.slow, pytest.mark.timeout(180)]
    ),  # in real time
    Kind("ours-kafka-manual", lambda profile: OursManual(profile, "kafka")),
    Kind("ours-kip-manual", lambda profile: OursManual(profile, "kip")),
    Kind("real", RealKafka, [pytest.mark.java, pytest.mark.timeout(300)]),
)
ON_REQUEST = (
    Kind("real-newer", NewerKafka, [pytest.mark.java, pytest.mark.timeout(300)]),
    Kind("virtual-newer", VirtualNewer),
    Kind("kfake", Kfake),
    Kind("librdkafka-mock", LibrdkafkaMock),
)
KINDS = {kind.name: kind for kind in (*DEFAULT, *ON_REQUEST)}
"""The kinds that run by default, and those that run on request: `--subjects ours-kafka,real,real-newer,virtual-newer,kfake,librdkafka-mock`."""
