"""A test that migration policy `downgrade` lets consumer groups become classic groups, but not the reverse (KIP-848)."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.migration_policies import allowed
from kafkaproto.conformance.subject import Subject

PROFILE = "migration-downgrade"
pytestmark = pytest.mark.needs("group.consumer.migration.policy", offsets_topic=True)


@pytest.mark.rule("GN-54", "GN-55", "GN-61")
def test_migration_policy_downgrade_allows_group_downgrades_but_no_upgrades(subject: Subject) -> None:
    assert allowed(subject) == (False, True)
