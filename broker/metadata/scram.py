"""SCRAM credentials of users: how AlterUserScramCredentials changes them (KIP-554).

The cluster, like Kafka's controller, keeps credentials even if no listener uses SASL. Follows `ScramControlManager`. This module does not depend on
wire messages.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

HASHES = {1: "sha256", 2: "sha512"}
"""Maps the number of a mechanism (SCRAM-SHA-256, SCRAM-SHA-512) to the name of its hash."""
FEWEST_ITERATIONS, MOST_ITERATIONS = 4096, 16384
ALTERED_TWICE = "A user credential cannot be altered twice in the same request"

CredentialKey = tuple[str, int]
"""Identifies a credential: (user, number of the mechanism)."""


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """The data that a broker stores to check a user's password (RFC 5802). It contains neither the password nor the salted password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@dataclass(frozen=True, slots=True)
class Deletion:
    """A SCRAM credential that a request deletes. mechanism: the number of the mechanism, such as 1 for SCRAM-SHA-256."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class Upsertion:
    """A SCRAM credential that a request creates or replaces. mechanism: the number of the mechanism, such as 1 for SCRAM-SHA-256."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


Credentials = Mapping[CredentialKey, ScramCredential]


def altered(
    credentials: Credentials, deletions: Iterable[Deletion], upsertions: Iterable[Upsertion]
) -> tuple[dict[CredentialKey, ScramCredential], dict[str, KafkaError | None]]:
    """Return (all credentials after the changes of a request, errors). The errors map each user in the request to an error or None (AD-30).

    deletions, upsertions: the changes. A user with an error keeps the old credentials, and the other users are changed nevertheless. A user with two
    changes gets an error. If a user has several errors, the first one is returned.
    """
    changes: dict[str, Deletion | Upsertion] = {}
    errors: dict[str, KafkaError] = {}
    requested_changes: list[Deletion | Upsertion] = [*deletions, *upsertions]
    for change in requested_changes:
        if change.user in errors:
            continue
        try:
            if changes.pop(change.user, None) is not None:
                raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, ALTERED_TWICE)
            _check(credentials, change)
            changes[change.user] = change
        except KafkaError as error:
            errors[change.user] = error
    credentials_after = dict(credentials)
    for change in changes.values():
        key = change.user, change.mechanism
        if isinstance(change, Deletion):
            del credentials_after[key]
        elif change.salted_password:
            credentials_after[key] = _credential(change)
        else:  # Kafka's hash function refuses an empty key
            errors[change.user] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return credentials_after, {**dict.fromkeys(changes), **errors}


def described(credentials: Credentials, user: str) -> list[tuple[int, int]]:
    """Return (number of the mechanism, iterations) of each credential of a user, sorted by mechanism. Empty if the user has no credential."""
    return [(m, credentials[user, m].iterations) for m in HASHES if (user, m) in credentials]


def _check(credentials: Credentials, change: Deletion | Upsertion) -> None:
    if not change.user:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in HASHES:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, Deletion):
        if (change.user, change.mechanism) not in credentials:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return
    if change.iterations < FEWEST_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MOST_ITERATIONS:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _credential(upsertion: Upsertion) -> ScramCredential:
    name = HASHES[upsertion.mechanism]
    client_key = hmac.digest(upsertion.salted_password, b"Client Key", name)
    server_key = hmac.digest(upsertion.salted_password, b"Server Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    return ScramCredential(upsertion.salt, stored_key, server_key, upsertion.iterations)
