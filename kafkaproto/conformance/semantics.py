"""Detection of whether a cluster follows Kafka's design documents or Kafka's code where the two differ.

The option `--semantics` calls the first kind of cluster `kip` and the second `kafka`.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.client import Closed
from kafkaproto.conformance.subject import Subject
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import ProtocolError
from kafkaproto.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

AUTO, KIP, KAFKA = "auto", "kip", "kafka"
THROTTLED_REPLICAS = "leader.replication.throttled.replicas"
KIP_FORM, INVALID = "0-1", "0"
"""Two values for `leader.replication.throttled.replicas`, a setting that lists partitions with their throttled replicas.

KIP_FORM is valid according to KIP-73; Kafka's code expects `0:1` instead (D10). INVALID is valid in neither form.
"""
VERSION, WITHIN_MS = 1, 10_000


def semantics_of(subject: Subject) -> str:
    """Return "kip" if the cluster follows Kafka's design documents where they differ from Kafka's code, "kafka" if it follows the code.

    The result is "kip" if the cluster accepts a list of throttled replicas in the form of KIP-73 and rejects an invalid one; otherwise it is "kafka".
    Changes nothing in the cluster.
    """
    with suppress(OSError, Closed, ProtocolError, AssertionError, pytest.skip.Exception):
        accepted = [_error(subject, text) == ErrorCode.NONE for text in (KIP_FORM, INVALID)]
        return KIP if accepted == [True, False] else KAFKA
    return KAFKA


def _error(subject: Subject, value: str) -> int:
    """Return the error code of CreateTopics, with validate_only, for a topic with one topic setting.

    value: the value of the setting `leader.replication.throttled.replicas`.
    """
    topic = CreatableTopic(
        "conformance-validated-only", 1, 1, configs=[CreatableTopicConfig(THROTTLED_REPLICAS, value)]
    )
    version = subject.version(ApiKey.CREATE_TOPICS, VERSION)
    response = subject.ask_once(CreateTopicsRequest([topic], WITHIN_MS, validate_only=True), version)
    return int(response.topics[0].error_code)
