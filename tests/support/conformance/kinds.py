"""The kinds of clusters that `tests/conformance` runs the suite on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkaproto.conformance.plugin import Kind
from tests.support.conformance.ours import Ours, OursManual, OursNewer
from tests.support.conformance.real_kafka import NewerKafka, RealKafka
from tests.support.conformance.rivals import Kfake, LibrdkafkaMock
from tests.support.conformance.virtual import NEWER_RELEASE, RELEASE, Virtual, VirtualNewer

_JAVA = (pytest.mark.java, pytest.mark.timeout(300))
_REAL_TIME = (pytest.mark.slow, pytest.mark.timeout(180))

_ALL = (
    Kind("virtual-kafka", lambda profile: Virtual(profile, "kafka"), release=RELEASE),
    Kind("virtual-kip", lambda profile: Virtual(profile, "kip"), release=RELEASE),
    Kind("virtual-newer", VirtualNewer, release=NEWER_RELEASE),
    Kind("virtual-kip-newer", lambda profile: VirtualNewer(profile, "kip"), release=NEWER_RELEASE),
    Kind("ours-kafka", lambda profile: Ours(profile, "kafka"), _REAL_TIME, RELEASE),
    Kind("ours-kafka-manual", lambda profile: OursManual(profile, "kafka"), release=RELEASE),
    Kind("ours-kip-manual", lambda profile: OursManual(profile, "kip"), release=RELEASE),
    Kind("ours-newer", OursNewer, release=NEWER_RELEASE),
    Kind("real", RealKafka, _JAVA, RELEASE),
    Kind("real-newer", NewerKafka, _JAVA, NEWER_RELEASE),
    Kind("kfake", Kfake),
    Kind("librdkafka-mock", LibrdkafkaMock),
)
KINDS = {kind.name: kind for kind in _ALL}
"""All kinds by name; `--subjects` chooses some, which then run the whole suite."""
NOT_ON_NEWER_KAFKA = frozenset(
    f"test_{name}"
    for name in (
        *("quotas", "quota_apis", "quota_levels", "replication_quotas", "mutations_and_connections"),
        *("partition_admin", "placement", "in_sync", "offset_expiry"),
    )
)
"""The modules that do not run on Kafka 4.2.0 by default, because they wait for some minutes in real time.

They check quotas, connection rates, the placement and administration of partitions, in-sync replicas and the expiration of offsets. In these areas,
4.2.0 and 3.9.1 behave alike in a run of the whole suite with `--subjects real-newer`, and this broker passes the tests with `--release 4.2`.
docs/how-to/conformance.md lists the modules.
"""
_MANY_REQUESTS = frozenset({"test_exhausted_epochs"})
"""The modules that do not run with a clock that the test advances: they send 33,000 requests in each test, and no time passes in them."""
_LEFT_OUT = {
    "real-newer": NOT_ON_NEWER_KAFKA,
    "ours-kafka-manual": _MANY_REQUESTS,
    "ours-kip-manual": _MANY_REQUESTS,
}
_RIVALS = ("kfake", "librdkafka-mock")
DEFAULT = tuple(
    replace(kind, left_out=_LEFT_OUT.get(kind.name, frozenset())) for kind in _ALL if kind.name not in _RIVALS
)
"""The kinds that run by default."""
