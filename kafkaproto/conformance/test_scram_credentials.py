"""Tests of SCRAM credentials, which a broker keeps even without SASL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kafkaproto.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName

SHA_256, SHA_512 = 1, 2
UNKNOWN_MECHANISM, RESOURCE_NOT_FOUND, DUPLICATE_RESOURCE, UNACCEPTABLE_CREDENTIAL = 33, 91, 92, 93
OK = 0, None
TWICE = DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
MISSING = RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
MECHANISM = UNKNOWN_MECHANISM, "Unknown SCRAM mechanism"
NO_NAME = UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
Upsert = tuple[Any, ...]
"""A credential to set: (user, mechanism, iterations, salt, salted password). Values at the end may be left out, and then have defaults."""


def alter(
    subject: Subject, deletions: Sequence[tuple[str, int]], *upserts: Upsert
) -> dict[str, tuple[int, str | None]]:
    """Delete and set SCRAM credentials. Returns a dict of users to (error code, error message).

    deletions: (user, mechanism) of each credential to delete; the mechanism is its number in the protocol. upserts: the credentials to set. An error
    message is None if there is no error.
    """
    upsertions = []
    for upsert in upserts:
        name, mechanism, iterations, salt, password = upsert + (SHA_256, 4096, b"salt", b"password")[len(upsert) - 1 :]
        upsertions.append(ScramCredentialUpsertion(name, mechanism, iterations, salt, password))
    request = AlterUserScramCredentialsRequest([ScramCredentialDeletion(*d) for d in deletions], upsertions)
    results = subject.ask_once(request, 0).results
    results_by_user = {r.user: (r.error_code, r.error_message) for r in results}
    assert len(results_by_user) == len(results)
    return results_by_user


def described(subject: Subject, *names: str) -> dict[str, tuple[int, str | None, list[tuple[int, int]]]]:
    """Return a dict of users to (error code, error message, sorted [(mechanism, iterations)]) from DescribeUserScramCredentials.

    names: the users to request, by default all. A mechanism is its number in the protocol. A message is "" if there is no error.
    """
    response = subject.ask_once(DescribeUserScramCredentialsRequest([UserName(name) for name in names]), 0)
    assert (response.error_code, response.error_message) == (0, "")
    infos = {r.user: sorted((i.mechanism, i.iterations) for i in r.credential_infos) for r in response.results}
    assert len(infos) == len(response.results)
    return {r.user: (r.error_code, r.error_message, infos[r.user]) for r in response.results}


@pytest.fixture
def user(subject: Subject) -> Iterator[str]:
    """Yield the name of a user with a SCRAM-SHA-256 credential that every broker knows, and delete the user's credentials afterwards."""
    name = subject.new_name("user")
    assert alter(subject, [], (name,)) == {name: OK}
    wait_until(subject, lambda: name in described(subject), f"user {name} has a credential")
    yield name
    alter(subject, [(name, SHA_256)])
    alter(subject, [(name, SHA_512)])
    wait_until(subject, lambda: name not in described(subject), f"user {name} has no credentials")


@pytest.mark.rule("AD-29", "AD-32", "SN-70")
def test_scram_credentials_of_a_user_are_added_replaced_and_deleted(subject: Subject, user: str) -> None:
    assert alter(subject, [], (user, SHA_512, 8192)) == {user: OK}
    both = (0, "", [(SHA_256, 4096), (SHA_512, 8192)])
    wait_until(
        subject,
        lambda: described(subject, user) == {user: both},
        f"user {user} has a SCRAM-SHA-256 and a SCRAM-SHA-512 credential",
    )
    assert alter(subject, [], (user, SHA_256, 16384, b"")) == {user: OK}
    changed = (0, "", [(SHA_256, 16384), (SHA_512, 8192)])
    wait_until(
        subject,
        lambda: described(subject, user) == {user: changed},
        f"the SCRAM-SHA-256 credential of user {user} has 16384 iterations",
    )
    assert alter(subject, [(user, SHA_256)]) == {user: OK}
    remaining_credential = (0, "", [(SHA_512, 8192)])
    wait_until(
        subject,
        lambda: described(subject)[user] == remaining_credential,
        f"user {user} has only the SCRAM-SHA-512 credential",
    )
    assert alter(subject, []) == {}


@pytest.mark.rule("AD-30", "SN-70")
def test_scram_changes_with_invalid_user_or_mechanism_or_iterations_are_rejected(subject: Subject, user: str) -> None:
    for deletions, upserts, error in (
        ([], [("",)], NO_NAME),
        ([("", 0)], [("", 3, 1)], NO_NAME),
        ([], [(user, 3)], MECHANISM),
        ([], [(user, 0)], MECHANISM),
        ([(user, 3)], [], MECHANISM),
        ([], [(user, SHA_256, 4095)], (UNACCEPTABLE_CREDENTIAL, "Too few iterations")),
        ([], [(user, SHA_512, 16385)], (UNACCEPTABLE_CREDENTIAL, "Too many iterations")),
        ([], [(user, SHA_256, 4096, b"salt", b"")], (-1, None)),
        ([(user, SHA_512)], [], MISSING),
    ):
        [result] = alter(subject, deletions, *upserts).values()
        assert result == error
    assert described(subject, user) == {user: (0, "", [(SHA_256, 4096)])}


@pytest.mark.rule("AD-30", "AD-31", "SN-70")
def test_several_scram_changes_of_one_user_in_a_request_are_rejected(subject: Subject, user: str) -> None:
    for deletions, upserts, error in (
        ([], [(user,), (user, SHA_512)], TWICE),
        ([], [(user,), (user,), (user,)], TWICE),
        ([], [(user,), (user, 3)], TWICE),
        ([], [(user, SHA_256, 4096, b"salt", b""), (user,)], TWICE),
        ([], [(user, 3), (user,)], MECHANISM),
        ([(user, SHA_256)], [(user, SHA_512)], TWICE),
        ([(user, SHA_256), (user, SHA_512)], [], TWICE),
        ([(user, SHA_512), (user, SHA_256)], [], MISSING),
        ([(user, SHA_512)], [(user, SHA_512)], MISSING),
    ):
        assert alter(subject, deletions, *upserts) == {user: error}
    assert described(subject, user) == {user: (0, "", [(SHA_256, 4096)])}


@pytest.mark.rule("AD-30")
def test_scram_error_of_one_user_does_not_reject_the_changes_of_other_users(subject: Subject, user: str) -> None:
    other = subject.new_name("user")
    assert alter(subject, [(other, SHA_256)], (user, SHA_256, 5000)) == {other: MISSING, user: OK}
    wait_until(
        subject,
        lambda: described(subject, user)[user][2] == [(SHA_256, 5000)],
        f"the SCRAM-SHA-256 credential of user {user} has 5000 iterations",
    )


@pytest.mark.rule("AD-32", "SN-70")
def test_describe_user_scram_credentials_rejects_unknown_and_repeated_users(subject: Subject, user: str) -> None:
    other = subject.new_name("user")
    twice = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    missing = f"Attempt to describe a user credential that does not exist: {other}"
    assert described(subject, user, other, user) == {
        user: (DUPLICATE_RESOURCE, twice, []),
        other: (RESOURCE_NOT_FOUND, missing, []),
    }
