"""Parsing of the settings `listeners` and `advertised.listeners`."""

from __future__ import annotations

import pytest

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.listeners import Listener, listeners_of, parse_endpoints
from kafkaproto.broker.config.values import ConfigError


def of(broker_id: int = 0, **settings: str) -> list[Listener]:
    config = ClusterConfig({name.replace("_", "."): text for name, text in settings.items()})
    return listeners_of(config.for_broker(broker_id), "127.0.0.1", 9092)


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        ("PLAINTEXT://:9092", {"PLAINTEXT": ("", 9092)}),
        ("inside://0.0.0.0:9092, OUTSIDE://host.name:0", {"INSIDE": ("0.0.0.0", 9092), "OUTSIDE": ("host.name", 0)}),
        ("A://[::1]:65535", {"A": ("::1", 65535)}),
        ("A://h:1,", {"A": ("h", 1)}),
        ("A.b-c_1://h:1", {"A.B-C_1": ("h", 1)}),
    ],
)
def test_listener_endpoints_are_parsed_into_name_host_and_port(
    text: str, endpoints: dict[str, tuple[str, int]]
) -> None:
    assert parse_endpoints("listeners", text) == endpoints


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "9092",
        "host:9092",
        "A://host",
        "A://host:",
        "A://host:port",
        "A://host:65536",
        "A://::1:9092",
        "://h:1",
        "A://h:1/x",
        "A B://h:1",
        "A://h:-1",
        "A://h:٩",
    ],
)
def test_invalid_listener_endpoint_gets_a_one_line_error_with_an_example(text: str) -> None:
    with pytest.raises(
        ConfigError, match="is not NAME://host:port with a port up to 65535; for example listeners=INSIDE://"
    ) as raised:
        parse_endpoints("listeners", text)
    assert "\n" not in str(raised.value)


def test_duplicate_listener_name_is_rejected() -> None:
    with pytest.raises(ConfigError, match="listener A is named twice"):
        parse_endpoints("listeners", "A://h:1,a://h:2")


def test_default_listener_uses_the_host_and_port_of_the_command_line() -> None:
    assert of() == [Listener("PLAINTEXT", "127.0.0.1", 9092, "", 0)]


def test_advertised_listeners_entry_sets_the_address_of_only_the_listener_it_names() -> None:
    parsed_listeners = of(listeners="IN://0.0.0.0:1,OUT://0.0.0.0:2", advertised_listeners="OUT://public:3")
    assert parsed_listeners == [Listener("IN", "0.0.0.0", 1, "", 0), Listener("OUT", "0.0.0.0", 2, "public", 3)]


def test_advertised_listener_is_accepted_if_the_setting_listeners_is_not_set() -> None:
    assert of(advertised_listeners="PLAINTEXT://public:3") == [Listener("PLAINTEXT", "127.0.0.1", 9092, "public", 3)]


def test_each_broker_can_have_its_own_listeners() -> None:
    config = ClusterConfig({"listeners": "A://h:1", "1.listeners": "A://h:2"})
    assert [listeners_of(config.for_broker(i), "x", 0)[0].port for i in (0, 1)] == [1, 2]


def test_unknown_advertised_listener_is_rejected_with_the_names_of_known_listeners() -> None:
    with pytest.raises(
        ConfigError, match=r"advertised\.listeners=C://h:1: C is not among the listeners A, B"
    ) as raised:
        of(listeners="A://h:1,B://h:2", advertised_listeners="C://h:1")
    assert "for example advertised.listeners=A://localhost:9092" in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"listeners": "SSL://127.0.0.1:0"}, "listener SSL"),
        ({"listener.security.protocol.map": "PLAINTEXT:SASL_SSL"}, r"listener PLAINTEXT must have .* \(got SASL_SSL\)"),
        (
            {"listeners": "A://127.0.0.1:0", "listener.security.protocol.map": "B:PLAINTEXT"},
            r"listener A must have .* \(got none\)",
        ),
        ({"listener.security.protocol.map": "PLAINTEXT"}, "is not NAME:PROTOCOL"),
        ({"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,,A:SSL"}, "'' is not NAME:PROTOCOL"),
        ({"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,A:TLS"}, "TLS is not a protocol of Kafka"),
        ({"listener.security.protocol.map": ""}, r"listener PLAINTEXT must have .* \(got none\)"),
    ],
)
def test_listeners_other_than_plaintext_are_rejected(settings: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        listeners_of(ClusterConfig(settings).for_broker(0), "127.0.0.1", 0)
    assert "for example" in str(refused.value)


TWO = {"listeners": "A://h:1,B://h:2"}
INTER_BROKER, EARLY = "inter.broker.listener.name", "early.start.listeners"


@pytest.mark.rule("CF-18")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (TWO | {INTER_BROKER: "b"}, None),
        (TWO | {INTER_BROKER: "B", "advertised.listeners": "B://h:2"}, None),
        (TWO, None),
        ({INTER_BROKER: "FOO"}, "FOO is not among the advertised listeners PLAINTEXT; for example"),
        ({INTER_BROKER: ""}, "an empty name is not among the advertised listeners PLAINTEXT; for example"),
        (TWO | {INTER_BROKER: "B", "advertised.listeners": "A://h:1"}, "B is not among the advertised listeners A;"),
        (TWO | {INTER_BROKER: "A", "security.inter.broker.protocol": "PLAINTEXT"}, "must not be set together; remove"),
        (TWO | {EARLY: "A, B"}, None),
        (TWO | {EARLY: ""}, None),
        (TWO | {EARLY: "A,a"}, "a is not among the listeners A, B .in upper case.; for example"),
        ({"advertised.listeners": ""}, "'' is not NAME://host:port"),
        ({"advertised.listeners": "C://h:1", "controller.listener.names": "C"}, "all of these listeners belong to"),
    ],
)
def test_settings_that_name_a_listener_must_name_one_of_the_broker(
    settings: dict[str, str], message: str | None
) -> None:
    config = ClusterConfig(settings).for_broker(0)
    if message is None:
        assert listeners_of(config, "127.0.0.1", 0)
    else:
        with pytest.raises(ConfigError, match=message):
            listeners_of(config, "127.0.0.1", 0)
