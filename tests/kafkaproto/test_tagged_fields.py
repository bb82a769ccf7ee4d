"""Tagged fields (KIP-482), including cases that other Python libraries handle wrongly."""

from __future__ import annotations

import pytest

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.messages.api_versions import (
    API_VERSIONS_REQUEST_V3,
    API_VERSIONS_RESPONSE_V3,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kafkaproto.messages.fetch import (
    FETCH_REQUEST_V12,
    FETCH_REQUEST_V17,
    FETCH_RESPONSE_V12,
    FETCH_RESPONSE_V16,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
)
from tests.support.codec.example import EXAMPLE

EMPTY_REQUEST = b"\x01\x01"  # two empty compact strings


@pytest.mark.rule("W-16")
def test_unknown_tagged_field_survives_decoding_and_encoding() -> None:
    data = EMPTY_REQUEST + b"\x01\x63\x03abc"
    request = API_VERSIONS_REQUEST_V3.decode(data)
    assert request.unknown_tagged_fields == [(99, b"abc")]
    assert API_VERSIONS_REQUEST_V3.encode(request) == data


def test_tagged_field_with_tag_0_is_encoded_as_count_tag_size_and_value() -> None:
    assert FETCH_REQUEST_V12.encode(FetchRequest(cluster_id="abc")).endswith(b"\x01\x00\x04\x04abc")


def test_known_and_unknown_tagged_fields_are_encoded_in_ascending_order() -> None:
    response = ApiVersionsResponse(finalized_features_epoch=5, supported_features=[SupportedFeatureKey("f", 1, 2)])
    response.unknown_tagged_fields = [(200, b"z"), (4, b"y")]
    data = API_VERSIONS_RESPONSE_V3.encode(response)
    tags = data[len(b"\x00\x00\x01\x00\x00\x00\x00") :]
    assert tags == b"\x04" + b"\x00\x08\x02\x02f\x00\x01\x00\x02\x00" + b"\x01\x08" + b"\x00" * 7 + b"\x05" + (
        b"\x04\x01y" + b"\xc8\x01\x01z"
    )
    response.unknown_tagged_fields = [(4, b"y"), (200, b"z")]
    assert API_VERSIONS_RESPONSE_V3.decode(data) == response


def test_known_tagged_fields_are_decoded_in_any_order_among_unknown_fields() -> None:
    replica = b"\x01\x0d" + b"\x00\x00\x00\x07" + b"\x00" * 7 + b"\x09" + b"\x00"
    data = FETCH_REQUEST_V17.encode(FetchRequest())[:-1] + b"\x03" + b"\x32\x01x" + replica + b"\x00\x02\x02c"
    request = FETCH_REQUEST_V17.decode(data)
    assert (request.cluster_id, request.replica_state) == ("c", ReplicaState(7, 9))
    assert request.unknown_tagged_fields == [(50, b"x")]


def test_unknown_tagged_fields_of_a_struct_in_a_tagged_field_survive_a_round_trip() -> None:
    state = ReplicaState(7, 9, [(31, b"inside")])
    request = FetchRequest(replica_state=state, unknown_tagged_fields=[(31, b"outside")])
    assert FETCH_REQUEST_V17.decode(FETCH_REQUEST_V17.encode(request)) == request
    only_tags = FetchRequest(replica_state=ReplicaState(unknown_tagged_fields=[(1, b"")]))
    assert FETCH_REQUEST_V17.decode(FETCH_REQUEST_V17.encode(only_tags)) == only_tags


def test_tagged_fields_with_default_values_are_not_encoded() -> None:
    assert FETCH_REQUEST_V17.encode(FetchRequest())[-1:] == b"\x00"
    explicit = FetchRequest(replica_state=ReplicaState(-1, -1, []), unknown_tagged_fields=[])
    assert FETCH_REQUEST_V17.encode(explicit) == FETCH_REQUEST_V17.encode(FetchRequest())


def test_tagged_structs_of_a_fetch_partition_survive_a_round_trip() -> None:
    partition = PartitionData(
        diverging_epoch=EpochEndOffset(3, 400), current_leader=LeaderIdAndEpoch(2, 9), aborted_transactions=None
    )
    response = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
    assert FETCH_RESPONSE_V12.decode(FETCH_RESPONSE_V12.encode(response)) == response


def test_known_tagged_field_is_rejected_in_versions_that_do_not_define_the_field() -> None:
    response = FetchResponse(node_endpoints=[NodeEndpoint(1, "h", 9092, "r")])
    data = FETCH_RESPONSE_V16.encode(response)
    assert FETCH_RESPONSE_V16.decode(data) == response
    with pytest.raises(DecodeError, match=r"FetchResponse\.\(tag 0\)"):
        FETCH_RESPONSE_V12.decode(data)


def test_tagged_field_shorter_or_longer_than_its_announced_size_is_rejected() -> None:
    start = FETCH_REQUEST_V12.encode(FetchRequest())[:-1]
    for size in (3, 5):
        with pytest.raises(DecodeError, match="cluster_id"):
            FETCH_REQUEST_V12.decode(start + b"\x01\x00" + bytes([size]) + b"\x04abc" + b"\x00" * 9)


def test_too_many_tagged_fields_and_truncated_tagged_fields_are_rejected() -> None:
    for tags in (b"\x7f\x00\x00", b"\xff\xff\xff\xff\x0f", b"\x01\x63\x05abc", b"\x01", b"\x01\x63", b"\x02\x63\x01a"):
        with pytest.raises(DecodeError):
            API_VERSIONS_REQUEST_V3.decode(EMPTY_REQUEST + tags)
        with pytest.raises(DecodeError):
            FETCH_REQUEST_V12.decode(FETCH_REQUEST_V12.encode(FetchRequest())[:-1] + tags)


def test_duplicate_or_negative_tags_cannot_be_encoded() -> None:
    for unknown in ([(5, b""), (5, b"")], [(-1, b"")], [(0, b"")]):
        request = FetchRequest(cluster_id="c", unknown_tagged_fields=unknown)
        with pytest.raises(EncodeError, match=r"FetchRequest\.unknown_tagged_fields"):
            FETCH_REQUEST_V12.encode(request)


def test_tagged_field_count_of_zero_encoded_in_two_bytes_is_decoded_as_no_fields() -> None:
    assert API_VERSIONS_REQUEST_V3.decode(EMPTY_REQUEST + b"\x80\x00").unknown_tagged_fields is None


def test_more_than_127_tagged_fields_have_a_count_of_two_bytes() -> None:
    request = FetchRequest(unknown_tagged_fields=[(number, b"") for number in range(10, 310)])
    assert FETCH_REQUEST_V12.decode(FETCH_REQUEST_V12.encode(request)) == request
    features = [FinalizedFeatureKey(f"feature {i}", 2, 1) for i in range(300)]
    response = ApiVersionsResponse(finalized_features=features)
    assert API_VERSIONS_RESPONSE_V3.decode(API_VERSIONS_RESPONSE_V3.encode(response)) == response


def test_null_struct_is_encoded_as_int8_minus_1_or_in_a_tagged_field_as_varint_0() -> None:
    layout = EXAMPLE.REQUESTS[5]
    absent = layout.encode(EXAMPLE.ExampleRequest(batches=b""))
    assert layout.decode(absent).maybe is None
    encoded = layout.encode(EXAMPLE.ExampleRequest(batches=b"", maybe=EXAMPLE.Pair("k", 1)))
    at = next(i for i, (ours, theirs) in enumerate(zip(encoded, absent, strict=False)) if ours != theirs)
    assert (encoded[at], absent[at]) == (0x01, 0xFF)
    assert layout.decode(absent[:at] + b"\x80" + absent[at + 1 :]).maybe is None
    tagged = EXAMPLE.ExampleRequest(batches=b"", tagged_maybe=EXAMPLE.Point2(7))
    assert layout.encode(tagged).endswith(b"\x01" + b"\x02\x06" + b"\x01\x00\x00\x00\x07\x00")
    assert layout.decode(absent[:-1] + b"\x01\x02\x01\x00").tagged_maybe is None


def test_unknown_tagged_fields_cannot_be_encoded_in_versions_without_tagged_fields() -> None:
    partition = FetchPartition(unknown_tagged_fields=[(9, b"x")])
    request = FetchRequest(topics=[FetchTopic("t", partitions=[partition])])
    layout = FetchRequest.layout(11)
    for write in (layout.encode, layout.build):
        with pytest.raises(EncodeError, match=r"topics\[0\]\.partitions\[0\]\.unknown_tagged_fields in v11: .* lost"):
            write(request)
    partition.unknown_tagged_fields = []
    assert layout.encode(request) == layout.build(request)
