"""A test that migration policy `disabled` lets no group change between the classic and the new protocol (KIP-848)."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.migration_policies import allowed
from kafkaproto.conformance.subject import Subject

PROFILE = "migration-disabled"
pytestmark = pytest.mark.needs("group.consumer.migration.policy", offsets_topic=True)


@pytest.mark.rule("GN-54", "GN-55", "GN-61")
def test_group_migration_policy_disabled_allows_neither_upgrades_nor_downgrades(subject: Subject) -> None:
    assert allowed(subject) == (False, False)
