"""Environment variables as settings, as in the Docker image apache/kafka: `KAFKA_BROKER_RACK` sets `broker.rack`.

`kafkaproto broker --container` passes the environment variables of its process. The rules come from Kafka's `KafkaDockerWrapper` and from
the script `configure` of the Docker image apache/kafka.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping

from kafkaproto.arguments import nearest
from kafkaproto.broker.config.definitions import Definitions, Setting
from kafkaproto.broker.config.properties import properties
from kafkaproto.broker.config.values import ConfigError, broker_setting, parse, split_broker

logger = logging.getLogger("kafkaproto")

PREFIX = "KAFKA_"
LISTENERS, ADVERTISED_LISTENERS = "KAFKA_LISTENERS", "KAFKA_ADVERTISED_LISTENERS"

_OF_JVM = """
    KAFKA_VERSION KAFKA_HEAP_OPTS KAFKA_LOG4J_OPTS KAFKA_OPTS KAFKA_JMX_OPTS KAFKA_JVM_PERFORMANCE_OPTS KAFKA_GC_LOG_OPTS
    KAFKA_LOG4J_ROOT_LOGLEVEL KAFKA_LOG4J_LOGGERS KAFKA_TOOLS_LOG4J_LOGLEVEL KAFKA_JMX_HOSTNAME
"""
_OF_SCRIPTS = """
    CLUSTER_ID KAFKA_CLUSTER_ID KAFKA_HOME KAFKA_DEBUG KAFKA_JMX_PORT
    KAFKA_SSL_KEYSTORE_FILENAME KAFKA_SSL_KEYSTORE_CREDENTIALS KAFKA_SSL_KEY_CREDENTIALS
    KAFKA_SSL_TRUSTSTORE_FILENAME KAFKA_SSL_TRUSTSTORE_CREDENTIALS
"""

FOR_THE_JVM = frozenset(_OF_JVM.split())
"""Environment variables for the JVM. The Docker image apache/kafka does not read them as settings (`Constants.ExcludeServerPropsEnv`)."""
FOR_SCRIPTS = frozenset(_OF_SCRIPTS.split())
"""Environment variables for the scripts of Kafka and of its Docker images. They are not settings, so the broker does not warn about them."""

_SERVICE_LINK = re.compile(r"KAFKA_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
"""Matches an environment variable with the address of a service whose name begins with `kafka`, as Kubernetes or a Docker link sets it."""
_HOST = re.compile(r"://(\[[^\]]*\]|[^:]*):")


def setting_of(variable: str) -> str:
    """Return the name of the setting that an environment variable sets: "broker.rack" for `KAFKA_BROKER_RACK`.

    After the prefix, `_` stands for a dot, `__` for an underscore, and `___` for a hyphen.
    """
    name = variable.removeprefix(PREFIX).lower()
    return name.replace("_", ".").replace("...", "-").replace("..", "_")


def variable_of(setting: str) -> str:
    """Return the name of the environment variable that sets a setting: `KAFKA_BROKER_RACK` for "broker.rack"."""
    return PREFIX + setting.replace("_", "__").replace("-", "___").replace(".", "_").upper()


def settings_of_environment(
    variables: Mapping[str, str], definitions: Definitions, warn: Callable[[str], None] = logger.warning
) -> dict[str, str]:
    """Return the broker settings, by name, that the environment variables with the prefix `KAFKA_` define.

    variables: the names and values of environment variables. Variables for the JVM, for scripts and for service addresses (`ignored_variables`) are
    skipped without a warning. A variable that names an unknown setting is skipped, too, and `warn` is called with a text that names the variable.
    definitions: the known settings. If KAFKA_LISTENERS is not set, the result has the listeners of KAFKA_ADVERTISED_LISTENERS, on all addresses, as
    in the Docker image apache/kafka. Raises ConfigError for an invalid value, and for a malformed Unicode escape in a value; the message names the
    variable.
    """
    texts = {name: variables[name] for name in sorted(variables) if name.startswith(PREFIX)}
    if not texts.get(LISTENERS) and texts.get(ADVERTISED_LISTENERS):
        texts[LISTENERS] = _HOST.sub("://0.0.0.0:", texts[ADVERTISED_LISTENERS])
    settings: dict[str, str] = {}
    ignored_names = {*ignored_variables(texts)}
    for variable in texts:
        if variable not in ignored_names:
            settings |= _settings_of(variable, texts[variable], definitions, warn)
    return settings


def ignored_variables(variables: Mapping[str, str]) -> list[str]:
    """Return the sorted names of those environment variables that are known not to be broker settings, although some begin with `KAFKA_`.

    They are variables for the JVM, variables for scripts, and service addresses that Kubernetes or a Docker link sets.
    """
    return sorted(name for name in variables if _is_ignored(name))


def _is_ignored(variable: str) -> bool:
    return variable in FOR_THE_JVM or variable in FOR_SCRIPTS or _SERVICE_LINK.fullmatch(variable) is not None


def _settings_of(variable: str, value: str, definitions: Definitions, warn: Callable[[str], None]) -> dict[str, str]:
    """Return the settings that one environment variable defines.

    A value with several lines defines several settings, because the Docker image apache/kafka writes each variable as a line `name=value` into a
    properties file. An unknown setting is left out. definitions: the known settings. warn: called once for each unknown setting, with a text that
    names the variable.
    """
    settings: dict[str, str] = {}
    try:
        for entry in properties(f"{setting_of(variable)}={value}"):
            name = split_broker(entry.name)[1]
            setting = _definition_of(name, definitions)
            if setting is None:
                close = nearest(name, definitions.broker)
                hint = "" if close is None else f"; did you mean {variable_of(close)}?"
                warn(f'{variable}: the unknown broker setting "{name}" is ignored{hint}')
                continue
            parse(setting, entry.value)
            settings[entry.name] = entry.value
    except ValueError as error:  # a malformed escape, or a ConfigError
        raise ConfigError(f"{variable}: {error}") from None
    return settings


def _definition_of(setting: str, definitions: Definitions) -> Setting | None:
    try:
        return broker_setting(setting, definitions)
    except ConfigError:
        return None
