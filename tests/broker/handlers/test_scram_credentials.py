"""DescribeUserScramCredentials where nobody has a password: the codes that the real 3.9.1 gives to the same."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName


def described(*names: str) -> Any:
    return VirtualCluster().connect().ask(DescribeUserScramCredentialsRequest([UserName(n) for n in names]), 0)


def test_who_is_named_is_unknown_and_who_is_named_twice_is_told_once() -> None:
    answer = described("alice", "bob", "alice")
    assert answer.error_code == 0
    assert {(r.user, r.error_code, len(r.credential_infos)) for r in answer.results} == {
        ("alice", 92, 0),
        ("bob", 91, 0),
    }
    assert len(answer.results) == 2 and all(r.user in r.error_message for r in answer.results)


@pytest.mark.parametrize("users", [None, []])
def test_all_users_with_a_password_are_none(users: list[UserName] | None) -> None:
    answer = VirtualCluster().connect().ask(DescribeUserScramCredentialsRequest(users), 0)
    assert (answer.error_code, answer.error_message, answer.results) == (0, "", [])
