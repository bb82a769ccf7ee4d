"""How a connection is made safe: TLS, and SASL with PLAIN or SCRAM, from the names of Kafka's settings.

Keys and certificates are PEM, as files or as text; Java's own key stores cannot be read here. Must never know requests.
"""

from __future__ import annotations

import re
import socket
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kafkaproto.pipeline.kafka_py import scram
from kafkaproto.pipeline.kafka_py.errors import OptionError

PROTOCOL = "kafka.security.protocol"
MECHANISM = "kafka.sasl.mechanism"
JAAS = "kafka.sasl.jaas.config"
TRUST = "kafka.ssl.truststore"
KEYS = "kafka.ssl.keystore"
CHECKS_NAME = "kafka.ssl.endpoint.identification.algorithm"
KEY_PASSWORD = "kafka.ssl.key.password"
SECURITY_OPTIONS = (
    PROTOCOL,
    MECHANISM,
    JAAS,
    CHECKS_NAME,
    KEY_PASSWORD,
    f"{TRUST}.type",
    f"{TRUST}.location",
    f"{TRUST}.certificates",
    f"{KEYS}.type",
    f"{KEYS}.location",
    f"{KEYS}.key",
    f"{KEYS}.certificate.chain",
)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PLAIN = "PLAIN"
MODULES = {PLAIN: "PlainLoginModule", **dict.fromkeys(scram.HASHES, "ScramLoginModule")}
"""Of each mechanism of SASL that is spoken here, Kafka's class of Java that the settings name."""
_JAAS = re.compile(r"\s*\S+?(\w+)\s+required\s+(.*?);?\s*", re.DOTALL)
_JAAS_ENTRY = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;]+))")

Text = Callable[[str], str | None]


@dataclass(frozen=True)
class Security:
    """user, password, mechanism: of SASL, user None without it. trusted, keys: PEM files; *_text: PEM."""

    tls: bool = False
    user: str | None = None
    password: str = ""
    mechanism: str = PLAIN
    trusted: str | None = None
    trusted_text: str | None = None
    keys: str | None = None
    keys_text: str | None = None
    key_password: str | None = None
    checks_name: bool = True

    def __repr__(self) -> str:
        return f"Security(tls={self.tls}, user={self.user!r})"  # what is secret stays out of plans and logs


def read_security(text: Text) -> Security:
    """From the options. text: looks one up. OptionError names the one that cannot be had here."""
    protocol = (text(PROTOCOL) or "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise OptionError(PROTOCOL, f"{protocol!r} is not one of {', '.join(PROTOCOLS)}")
    user, password, mechanism = _login(text) if protocol.startswith("SASL") else (None, "", PLAIN)
    if not protocol.endswith("SSL"):
        return Security(user=user, password=password, mechanism=mechanism)
    for store in (TRUST, KEYS):
        if (text(f"{store}.location") or text(f"{store}.type")) and (text(f"{store}.type") or "JKS").upper() != "PEM":
            raise OptionError(f"{store}.type", "must be PEM here; Java's key stores cannot be read")
    key, chain = text(f"{KEYS}.key"), text(f"{KEYS}.certificate.chain")
    if (key is None) != (chain is None):
        raise OptionError(f"{KEYS}.key", f"and {KEYS}.certificate.chain must be given together")
    return Security(
        tls=True,
        user=user,
        password=password,
        mechanism=mechanism,
        trusted=text(f"{TRUST}.location"),
        trusted_text=text(f"{TRUST}.certificates"),
        keys=text(f"{KEYS}.location"),
        keys_text=None if key is None else f"{key}\n{chain}",
        key_password=text(KEY_PASSWORD),
        checks_name=(text(CHECKS_NAME) or "").lower() == "https" or text(CHECKS_NAME) is None,
    )


def _login(text: Text) -> tuple[str, str, str]:
    """(user, password, mechanism) of SASL."""
    mechanism = (text(MECHANISM) or "GSSAPI").upper()
    if mechanism not in MODULES:
        raise OptionError(MECHANISM, f"{mechanism} is not spoken here, but {', '.join(MODULES)}")
    config = _JAAS.fullmatch(text(JAAS) or "")
    found = {}
    for name, double, single, bare in _JAAS_ENTRY.findall(config[2]) if config else ():
        found[name] = re.sub(r"\\(.)", r"\1", double or single or bare)
    if config is None or config[1] != MODULES[mechanism] or not found.keys() >= {"username", "password"}:
        wanted = f'...{MODULES[mechanism]} required username="..." password="...";'
        raise OptionError(JAAS, f"is not of the form {wanted} as {mechanism} wants it")
    if mechanism in scram.HASHES:
        if found.get("tokenauth", "false").lower() == "true":
            raise OptionError(
                JAAS, "asks for a delegation token (tokenauth), which is not known here: give a user with a password"
            )
        if not (scram.is_prepared(found["username"]) and scram.is_prepared(found["password"])):
            raise OptionError(
                JAAS, f"has a name or a password of other letters than ASCII, which is not spoken here with {mechanism}"
            )
    return found["username"], found["password"], mechanism


def secured(sock: socket.socket, host: str, security: Security) -> socket.socket:
    """The socket, inside TLS if that is wanted. Raises OSError (ssl.SSLError is one) and OptionError for bad PEM."""
    return context(security).wrap_socket(sock, server_hostname=host) if security.tls else sock


def context(security: Security) -> ssl.SSLContext:
    """What TLS is spoken with. OptionError for PEM that cannot be read."""
    try:
        made = ssl.create_default_context(cafile=security.trusted, cadata=security.trusted_text)
    except (OSError, ValueError) as error:
        name = f"{TRUST}.location" if security.trusted else f"{TRUST}.certificates"
        raise OptionError(name, f"cannot be read: {error}") from None
    made.check_hostname = security.checks_name
    try:
        if security.keys:
            made.load_cert_chain(security.keys, password=security.key_password)
        elif security.keys_text:
            with tempfile.TemporaryDirectory() as folder:  # ssl reads keys from files only; ours is seen by nobody else
                path = Path(folder) / "keys.pem"
                path.touch(0o600)
                path.write_text(security.keys_text)
                made.load_cert_chain(path, password=security.key_password)
    except (OSError, ValueError) as error:
        name = f"{KEYS}.location" if security.keys else f"{KEYS}.key"
        raise OptionError(name, f"cannot be read: {error}") from None
    return made
