"""The check that a client's error has no other cause than a killed broker."""

from __future__ import annotations

import pytest

from tests.support.transactions.errors import ERRORS, is_from_killed_broker


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("franz-go", "EOF"),
        ("franz-go", "read tcp 127.0.0.1:5->127.0.0.1:9: read: connection reset by peer"),
        ("franz-go", "unable to dial: dial tcp 127.0.0.1:9: connect: connection refused"),
        ("franz-go", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("kafkajs", "KafkaJSConnectionClosedError"),
        ("kafkajs", "KafkaJSGroupCoordinatorNotFound"),
        ("kafkajs", "GROUP_LOAD_IN_PROGRESS"),
    ],
)
def test_connection_and_loading_errors_of_clients_are_attributed_to_a_killed_broker(library: str, name: str) -> None:
    assert is_from_killed_broker(library, name)


@pytest.mark.parametrize("library", list(ERRORS))
def test_producer_fenced_and_txn_state_errors_are_not_attributed_to_a_killed_broker(library: str) -> None:
    for name in (*ERRORS[library], "PRODUCER_FENCED", "INVALID_TXN_STATE", "INVALID_PRODUCER_ID_MAPPING"):
        assert not is_from_killed_broker(library, name)


def test_eof_error_of_java_and_python_clients_is_not_attributed_to_a_killed_broker() -> None:
    for library in ERRORS.keys() - {"franz-go", "kafkajs"}:
        assert not is_from_killed_broker(library, "EOF")
