"""DescribeUserScramCredentials without any credentials; the expected error codes are those of Kafka 3.9.1."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName


def described(*names: str) -> Any:
    return VirtualCluster().connect().ask(DescribeUserScramCredentialsRequest([UserName(n) for n in names]), 0)


def test_describe_scram_credentials_reports_unknown_users_and_repeated_users_once() -> None:
    answer = described("alice", "bob", "alice")
    assert answer.error_code == 0
    assert {(r.user, r.error_code, len(r.credential_infos)) for r in answer.results} == {
        ("alice", 92, 0),
        ("bob", 91, 0),
    }
    assert len(answer.results) == 2 and all(r.user in r.error_message for r in answer.results)


@pytest.mark.parametrize("users", [None, []])
def test_describe_scram_credentials_of_all_users_returns_an_empty_list(users: list[UserName] | None) -> None:
    answer = VirtualCluster().connect().ask(DescribeUserScramCredentialsRequest(users), 0)
    assert (answer.error_code, answer.error_message, answer.results) == (0, "", [])
