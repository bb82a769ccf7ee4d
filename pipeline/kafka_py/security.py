"""Secures connections with TLS and SASL (PLAIN or SCRAM), as configured by options with the names of Kafka's settings.

Keys and certificates are PEM, as files or as text; Java key stores cannot be read. This module does not depend on Kafka requests.
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
STORE_PASSWORDS = (f"{TRUST}.password", f"{KEYS}.password")
"""The names of the options with passwords of Java key stores, which kafka_py rejects."""
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PLAIN = "PLAIN"
MODULES = {PLAIN: "PlainLoginModule", **dict.fromkeys(scram.HASHES, "ScramLoginModule")}
"""Maps each supported SASL mechanism to the login module (a Java class of Kafka) that the setting `sasl.jaas.config` must name."""
_JAAS = re.compile(r"\s*\S+?(\w+)\s+required\s+(.*?);?\s*", re.DOTALL)
_JAAS_ENTRY = re.compile(r"(\w+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;]+))")

_PEM_INSTEAD = f"give PEM files instead, for example {TRUST}.type=PEM and {TRUST}.location=ca.pem"

Text = Callable[[str], str | None]


@dataclass(frozen=True)
class Security:
    """The settings of TLS and SASL.

    - user, password, mechanism: the SASL settings; user is None without SASL.
    - trusted, trusted_text: the accepted CA certificates, as the name of a PEM file or as PEM text; both are None to accept the CA
      certificates of the system.
    - keys, keys_text: the client's key and certificates in the same two forms; both are None without a client certificate.
    - checks_name: whether the broker's certificate must contain the host name to which the client connects.
    """

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

    @property
    def protocol(self) -> str:
        """Return the value of `kafka.security.protocol` that corresponds to these settings."""
        return _protocol(self.tls, self.user is not None)

    def __repr__(self) -> str:
        return f"Security(tls={self.tls}, user={self.user!r})"  # no secrets in plans and logs


class WrongProtocol(ConnectionError):
    """Raised if only one side of a connection seems to speak TLS: the handshake fails, or the peer closes the connection."""


def _protocol(tls: bool, sasl: bool) -> str:
    return f"{'SASL_' if sasl else ''}{'SSL' if tls else 'PLAINTEXT'}"


def read_security(text: Text) -> Security:
    """Return the security settings in the options of a read or a write. Raises OptionError that names an invalid or unsupported option.

    text: a function that returns the value of an option, or None if the option is not given.
    """
    _refuse_key_stores(text)
    protocol = (text(PROTOCOL) or "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise OptionError(PROTOCOL, f"{protocol!r} is not one of {', '.join(PROTOCOLS)}")
    user, password, mechanism = _login(text) if protocol.startswith("SASL") else (None, "", PLAIN)
    if not protocol.endswith("SSL"):
        return Security(user=user, password=password, mechanism=mechanism)
    key, chain = text(f"{KEYS}.key"), text(f"{KEYS}.certificate.chain")
    if (key is None) != (chain is None):
        raise OptionError(f"{KEYS}.key", f"must be given together with {KEYS}.certificate.chain; set both or neither")
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


def _refuse_key_stores(text: Text) -> None:
    """Raise OptionError if an option of Java key stores is given, even for a protocol that ignores it. text: returns an option's value, or None."""
    for name in STORE_PASSWORDS:
        if text(name) is not None:
            raise OptionError(name, f"belongs to Java key stores, which cannot be read; {_PEM_INSTEAD}")
    for store in (TRUST, KEYS):
        kind, location = text(f"{store}.type"), text(f"{store}.location")
        if (kind is not None or location is not None) and (kind or "JKS").strip().upper() != "PEM":
            raise OptionError(f"{store}.type", f"must be PEM; Java key stores cannot be read; {_PEM_INSTEAD}")


def _login(text: Text) -> tuple[str, str, str]:
    """Return (user, password, mechanism) for SASL, from the options. Raises OptionError if one of these is missing or unsupported.

    text: a function that returns the value of an option, or None if the option is not given.
    """
    mechanism = (text(MECHANISM) or "GSSAPI").upper()
    if mechanism not in MODULES:
        raise OptionError(MECHANISM, f"{mechanism} is not supported; supported are {', '.join(MODULES)}")
    config = _JAAS.fullmatch(text(JAAS) or "")
    login = {}
    for name, double, single, bare in _JAAS_ENTRY.findall(config[2]) if config else ():
        login[name] = re.sub(r"\\(.)", r"\1", double or single or bare)
    if config is None or config[1] != MODULES[mechanism] or not login.keys() >= {"username", "password"}:
        form = f'...{MODULES[mechanism]} required username="..." password="...";'
        raise OptionError(JAAS, f"must have the form {form} for kafka.sasl.mechanism={mechanism}")
    if mechanism in scram.HASHES:
        if login.get("tokenauth", "false").lower() == "true":
            raise OptionError(
                JAAS, "asks for a delegation token (tokenauth), which is not supported; give a user with a password"
            )
        if not (scram.is_prepared(login["username"]) and scram.is_prepared(login["password"])):
            raise OptionError(
                JAAS,
                "has a user name or a password with characters outside ASCII, which kafka_py does not support with "
                f"{mechanism}; use only printable ASCII characters",
            )
    return login["username"], login["password"], mechanism


def secured(sock: socket.socket, host: str, security: Security) -> socket.socket:
    """Return the socket wrapped in TLS, or the socket itself if the settings do not use TLS.

    host: the host name of the broker. With `checks_name`, the broker's certificate must contain this name. Raises WrongProtocol if the peer speaks no
    TLS, ConnectionError if the broker refuses the handshake, SSLCertVerificationError if the broker's certificate is not accepted, TimeoutError if
    the handshake takes too long, and OptionError for invalid PEM.
    """
    if not security.tls:
        return sock
    tls_context = context(security)
    try:
        return tls_context.wrap_socket(sock, server_hostname=host)
    except (ssl.SSLCertVerificationError, TimeoutError):
        raise
    except (ssl.SSLEOFError, ConnectionError):
        raise WrongProtocol(
            "the broker closed the connection during the TLS handshake; it probably uses no TLS (PLAINTEXT or SASL_PLAINTEXT)"
        ) from None
    except ssl.SSLError as error:
        speaks_tls = "ALERT" in (error.reason or "")  # and refuses the handshake, for example the certificate
        raise (ConnectionError if speaks_tls else WrongProtocol)(
            f"the TLS handshake with the broker failed ({error.reason or error}); check the options kafka.ssl.*"
        ) from None


def context(security: Security) -> ssl.SSLContext:
    """Return the TLS context that the settings describe. Raises OptionError for PEM that cannot be read."""
    try:
        tls_context = ssl.create_default_context(cafile=security.trusted, cadata=security.trusted_text)
    except (OSError, ValueError) as error:
        name = f"{TRUST}.location" if security.trusted else f"{TRUST}.certificates"
        raise OptionError(name, f"cannot be read as PEM: {error}") from None
    tls_context.check_hostname = security.checks_name
    try:
        if security.keys:
            tls_context.load_cert_chain(security.keys, password=security.key_password)
        elif security.keys_text:
            with tempfile.TemporaryDirectory() as folder:  # ssl reads keys from files only; this folder is private
                path = Path(folder) / "keys.pem"
                path.touch(0o600)
                path.write_text(security.keys_text)
                tls_context.load_cert_chain(path, password=security.key_password)
    except (OSError, ValueError) as error:
        name = f"{KEYS}.location" if security.keys else f"{KEYS}.key"
        raise OptionError(name, f"cannot be read as PEM: {error}") from None
    return tls_context
