"""A test that migration policy `upgrade` lets classic groups become consumer groups, but not the reverse (KIP-848)."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.migration_policies import allowed
from kafkaproto.conformance.subject import Subject

PROFILE = "migration-upgrade"
pytestmark = pytest.mark.needs("group.consumer.migration.policy", offsets_topic=True)


@pytest.mark.rule("GN-54", "GN-55", "GN-61")
def test_migration_policy_upgrade_allows_group_upgrades_but_no_downgrades(subject: Subject) -> None:
    assert allowed(subject) == (True, False)
