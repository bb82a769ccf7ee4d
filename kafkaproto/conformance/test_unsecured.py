"""Tests of SASL, ACL and delegation-token APIs on a broker without SASL, authorizer and delegation tokens."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.create_acls import AclCreation, CreateAclsRequest
from kafkaproto.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from kafkaproto.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafkaproto.messages.describe_acls import DescribeAclsRequest
from kafkaproto.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kafkaproto.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kafkaproto.messages.renew_delegation_token import RenewDelegationTokenRequest
from kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkaproto.messages.sasl_handshake import SaslHandshakeRequest

ILLEGAL_SASL_STATE, SECURITY_DISABLED, TOKEN_REQUEST_NOT_ALLOWED = 34, 54, 64
TOPIC, LITERAL, READ, ALLOW = 2, 3, 3, 3
UNASSIGNED = 99
"""A number that is no code of a resource type, pattern type, operation or permission of an ACL."""
ACL = TOPIC, "t", LITERAL, "User:a", "*", READ, ALLOW
ANY = 1, None, 1, None, None, 1, 1


@pytest.mark.rule("AD-35")
def test_sasl_handshake_fails_and_the_connection_stays_open(subject: Subject) -> None:
    connection = subject.connect()
    for version in subject.served(ApiKey.SASL_HANDSHAKE, (0, 1)):
        for mechanism in ("PLAIN", "SCRAM-SHA-256", ""):
            response = subject.ask(connection, SaslHandshakeRequest(mechanism), version)
            assert (response.error_code, response.mechanisms) == (ILLEGAL_SASL_STATE, [])
    assert subject.ask(connection, ApiVersionsRequest("a", "1"), 3).error_code == 0


@pytest.mark.rule("AD-35")
def test_sasl_authenticate_on_a_plaintext_listener_gets_illegal_sasl_state(subject: Subject) -> None:
    connection = subject.connect()
    for version in subject.served(ApiKey.SASL_AUTHENTICATE, (0, 1, 2)):
        for token in (b"\0user\0secret", b""):
            response = subject.ask(connection, SaslAuthenticateRequest(token), version)
            text = "SaslAuthenticate request received after successful authentication"
            assert (response.error_code, response.error_message) == (ILLEGAL_SASL_STATE, text)
            assert (response.auth_bytes, response.session_lifetime_ms) == (b"", 0)
    assert subject.ask(connection, ApiVersionsRequest("a", "1"), 3).error_code == 0


@pytest.mark.rule("AD-34")
def test_access_control_lists_cannot_be_described_without_an_authorizer(subject: Subject) -> None:
    connection = subject.connect()
    for version in subject.served(ApiKey.DESCRIBE_ACLS, range(4)):
        requests = [DescribeAclsRequest(*ACL), DescribeAclsRequest(*ANY), DescribeAclsRequest(*(UNASSIGNED, *ACL[1:]))]
        for request in requests:
            if version == 0:
                request.pattern_type_filter = LITERAL
            response = subject.ask(connection, request, version)
            text = "No Authorizer is configured on the broker"
            assert (response.error_code, response.error_message, response.resources) == (SECURITY_DISABLED, text, [])


@pytest.mark.rule("AD-34")
def test_access_control_lists_cannot_be_changed_without_an_authorizer(subject: Subject) -> None:
    connection = subject.connect()
    disabled = SECURITY_DISABLED, "No Authorizer is configured."
    for version in subject.served(ApiKey.CREATE_ACLS, range(4)):
        for acls in ([ACL, ACL], [(*ACL[:-1], UNASSIGNED), (TOPIC, "", *ACL[2:])], []):
            created = subject.ask(connection, CreateAclsRequest([AclCreation(*acl) for acl in acls]), version).results
            assert [(r.error_code, r.error_message) for r in created] == [disabled] * len(acls)
            deletion = DeleteAclsRequest([DeleteAclsFilter(*acl) for acl in acls])
            deleted = subject.ask(connection, deletion, version).filter_results
            assert [(r.error_code, r.error_message, r.matching_acls) for r in deleted] == [(*disabled, [])] * len(acls)


@pytest.mark.rule("AD-34")
@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission_type"])
def test_connection_is_closed_after_an_acl_request_with_an_unknown_enum_value(subject: Subject, field: str) -> None:
    name = {"resource_type": "resource_type_filter", "pattern_type": "pattern_type_filter"}.get(field, field)
    created = {"pattern_type": "resource_pattern_type"}.get(field, field)
    acl_filter, creation, deletion = DescribeAclsRequest(*ACL), AclCreation(*ACL), DeleteAclsFilter(*ACL)
    setattr(acl_filter, name, 0)
    setattr(creation, created, 0)
    setattr(deletion, name, 0)
    requests: tuple[Any, ...] = (
        acl_filter,
        CreateAclsRequest([AclCreation(*ACL), creation]),
        DeleteAclsRequest([deletion]),
    )
    for request in requests:
        connection = subject.connect()
        subject.send(connection, request, 1)
        assert subject.closed(connection)


@pytest.mark.rule("AD-33")
def test_delegation_tokens_cannot_be_created_without_authentication(subject: Subject) -> None:
    anonymous, never = ("User", "ANONYMOUS"), (-1, -1, -1)
    for version in subject.served(ApiKey.CREATE_DELEGATION_TOKEN, range(4)):
        for owner, expected, error in (
            (("", ""), anonymous, TOKEN_REQUEST_NOT_ALLOWED),
            ((None, None), anonymous, TOKEN_REQUEST_NOT_ALLOWED),
            (("User", ""), anonymous, TOKEN_REQUEST_NOT_ALLOWED),
            (("Other", None), anonymous, TOKEN_REQUEST_NOT_ALLOWED),
            (("User", "bob"), ("User", "bob"), TOKEN_REQUEST_NOT_ALLOWED),
            (("", "bob"), ("", "bob"), TOKEN_REQUEST_NOT_ALLOWED),
            ((None, "bob"), anonymous, -1),
        )[: 7 if version >= 3 else 1]:
            kind, name = owner
            request = CreateDelegationTokenRequest(kind, name, [CreatableRenewers("User", "a")], 1000)
            response = subject.ask_once(request, version)
            assert (response.error_code, response.principal_type, response.principal_name) == (error, *expected)
            assert (response.issue_timestamp_ms, response.expiry_timestamp_ms, response.max_timestamp_ms) == never
            assert (response.token_id, response.hmac) == ("", b"")
            if version >= 3:
                assert (response.token_requester_principal_type, response.token_requester_principal_name) == anonymous


@pytest.mark.rule("AD-33")
def test_delegation_tokens_need_authentication_to_be_renewed_expired_or_described(subject: Subject) -> None:
    for version in subject.served(ApiKey.RENEW_DELEGATION_TOKEN, range(3)):
        for change in (RenewDelegationTokenRequest(b"hmac", 10), ExpireDelegationTokenRequest(b"hmac", 10)):
            response = subject.ask_once(change, version)
            assert (response.error_code, response.expiry_timestamp_ms) == (TOKEN_REQUEST_NOT_ALLOWED, -1)
    for version in subject.served(ApiKey.DESCRIBE_DELEGATION_TOKEN, range(4)):
        for owners in (None, [], [DescribeDelegationTokenOwner("User", "a")]):
            response = subject.ask_once(DescribeDelegationTokenRequest(owners), version)
            assert (response.error_code, response.tokens) == (TOKEN_REQUEST_NOT_ALLOWED, [])
