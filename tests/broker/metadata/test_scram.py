"""SCRAM credentials as the cluster stores them."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from kafkaproto.broker.metadata.scram import Deletion, ScramCredential, Upsertion, altered
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.support.broker.processes import Processes

PASSWORD = hashlib.pbkdf2_hmac("sha256", b"pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
"""The salted password of RFC 7677, section 3."""


def test_scram_credential_contains_the_keys_defined_by_rfc_5802() -> None:
    """The keys of password "pencil" with this salt, as PostgreSQL stores them."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credentials, errors = altered({}, [], [Upsertion("user", 1, 4096, salt, PASSWORD)])
    assert errors == {"user": None}
    stored = base64.b64decode("WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=")
    server = base64.b64decode("wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")
    assert credentials == {("user", 1): ScramCredential(salt, stored, server, 4096)}
    assert altered(credentials, [Deletion("user", 1)], []) == ({}, {"user": None})


def request(*users: str, deleted: tuple[str, ...] = ()) -> Any:
    upsertions = [ScramCredentialUpsertion(user, 1, 4096, b"salt", b"password") for user in users]
    return AlterUserScramCredentialsRequest([ScramCredentialDeletion(user, 1) for user in deleted], upsertions)


def test_scram_credentials_survive_a_crash_and_restart_of_the_broker(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    client = processes.cluster.connect()
    client.ask(request("a", "b"), 0)
    client.ask(request(deleted=("a",)), 0)
    before = dict(processes.cluster.state.controller.image.scram)
    assert list(before) == [("b", 1)]
    for _ in range(2):
        assert dict(processes.crash_and_restart().state.controller.image.scram) == before


def test_cluster_reset_deletes_scram_credentials() -> None:
    cluster = VirtualCluster()
    cluster.connect().ask(request("a"), 0)
    cluster.state.reset()
    assert cluster.state.controller.image.scram == {}
