"""A client that sets, changes and removes quotas on every level while other clients use them (KIP-546)."""

from __future__ import annotations

from functools import partial
from typing import Any

from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from tests.simulation.client import Client, E
from tests.simulation.identity import DEFAULT, Entity
from tests.simulation.quotas import FETCH, KEYS, MUTATION, PRODUCE, REQUEST, USER, Change

BOUNDS = {
    PRODUCE: (40.0, 90.0, 200.0, 500.0, 1e6),
    FETCH: (150.0, 400.0, 1000.0, 3000.0, 1e6),
    REQUEST: (0.05, 0.3, 1.0, 7.5, 100.0),
    MUTATION: (0.03, 0.3, 1.0, 2.5),
}
"""Limits per second that throttle a client of a simulation occasionally, and seldom for long."""
NOBODY = "nobody"


class Admin(Client):
    """Sets and removes quotas of users, client-ids and pairs, by name and by default."""

    def act(self) -> None:
        line = self.line(self.world.chance.choice(self.world.running()))
        if line is None or not line.is_idle or self.world.quotas.pending:
            return
        entities = dict.fromkeys(self._entity() for _ in range(self.world.chance.choice([1, 1, 1, 2, 3])))
        self._alter([self._changes(entity) for entity in entities])

    def lift_all(self) -> None:
        """Remove all quotas."""
        self.lines.clear()  # existing connections may be muted
        values = self.world.quotas.values
        entities = dict.fromkeys(entity for key in KEYS for entity in values[key])
        if entities:
            self._alter([[(e, key, None) for key in KEYS if e in values[key]] for e in entities])
        assert not self.world.quotas.any, f"not lifted: {values}"

    def _entity(self) -> Entity:
        chance = self.world.chance
        present = [entity for values in self.world.quotas.values.values() for entity in values]
        if present and chance.random() < 0.6:  # change an existing quota
            return chance.choice(present)
        user = chance.choice([None, None, USER, USER, DEFAULT, NOBODY])
        names = [name for name in self.world.client_ids if name]
        client_id = chance.choice([*names, DEFAULT, DEFAULT, NOBODY, None if user else DEFAULT])
        return user, client_id

    def _changes(self, entity: Entity) -> list[Change]:
        chance = self.world.chance
        changes: list[Change] = []
        for key in chance.sample(KEYS, chance.choice([1, 1, 2])):
            is_set = entity in self.world.quotas.values[key]
            removed = is_set and chance.random() < 0.4
            changes.append((entity, key, None if removed else chance.choice(BOUNDS[key])))
        return changes

    def _alter(self, change_sets: list[list[Change]]) -> None:
        line = self.line(self.world.chance.choice(self.world.running()))
        if line is None or not line.is_idle:
            return
        self.world.quotas.pending = change_sets
        request = AlterClientQuotasRequest([_entry(changes) for changes in change_sets])
        line.request(request, self.world.chance.choice([0, 1]), partial(self._on_response, self.world.refuses))

    def _on_response(self, refuses: bool, answer: Any) -> None:
        for entry in answer.entries:
            allowed = {E.KAFKA_STORAGE_ERROR} if refuses else {0}
            assert entry.error_code in allowed, f"{entry}, the disk {'refuses' if refuses else 'is well'}"


def _entry(changes: list[Change]) -> AlterClientQuotasRequestEntryData:
    [(user, client_id), *_] = [entity for entity, _, _ in changes]
    entity = [
        AlterClientQuotasRequestEntityData(kind, None if name == DEFAULT else name)
        for kind, name in (("user", user), ("client-id", client_id))
        if name is not None
    ]
    ops = [OpData(key, 0.0 if value is None else value, value is None) for _, key, value in changes]
    return AlterClientQuotasRequestEntryData(entity, ops)
