"""Conversations about settings of topics, brokers, groups and client metrics, and about quotas.

`SettingsWriter` chooses steps as plain values, and `SettingsPlayer` sends their requests. Neither knows the expected responses.
"""

from __future__ import annotations

from random import Random
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages import alter_configs
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kafkaproto.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.releases import versions
from tests.differential.shown import Shown

Step = tuple[str, dict[str, Any]]

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC_TYPE, BROKER_TYPE, METRICS_TYPE, GROUP_TYPE = 2, 4, 16, 32
TOPIC, MISSING = "topic", "missing topic"
RESOURCES: tuple[tuple[int, str], ...] = (
    *[(TOPIC_TYPE, TOPIC)] * 6,
    (TOPIC_TYPE, MISSING),
    (TOPIC_TYPE, ""),
    *[(BROKER_TYPE, "1")] * 2,
    (BROKER_TYPE, ""),
    (BROKER_TYPE, "7"),
    (BROKER_TYPE, "x"),
    *[(GROUP_TYPE, "group")] * 2,
    (METRICS_TYPE, "metrics"),
    (1, "unknown type"),
)
"""The type and the name of resources. `TOPIC`, `group` and `metrics` stand for names of the conversation."""
VALUES: dict[int, dict[str, list[str | None]]] = {
    TOPIC_TYPE: {
        "retention.ms": ["1000", "-1", "-2", "x", "", None, "99999999999999999999"],
        "cleanup.policy": ["compact", "delete", "compact,delete", "compact, delete", "nothing", "", "delete,delete"],
        "max.message.bytes": ["0", "300", "-1", "1.5", "2147483648"],
        "min.insync.replicas": ["1", "2", "0"],
        "compression.type": ["gzip", "producer", "LZ4", "none"],
        "min.cleanable.dirty.ratio": ["0.2", "1", "1.1", "-0.1", "x"],
        "message.timestamp.type": ["LogAppendTime", "CreateTime", "Other"],
        "unclean.leader.election.enable": ["true", "TRUE", "false", "yes"],
        "leader.replication.throttled.replicas": ["*", "0:1", "0:1,1:2", "x", ""],
        "segment.bytes": ["1000", "1048576", "13", "x"],
        "nothing": ["1"],
    },
    BROKER_TYPE: {
        "log.cleaner.threads": ["1", "2", "9", "0", "x", None],
        "message.max.bytes": ["1000000", "-1", "x"],
        "log.retention.ms": ["100000", "-1", "x"],
        "log.cleanup.policy": ["compact", "delete,compact", "nothing"],
        "min.insync.replicas": ["1", "0"],
        "broker.rack": ["r9"],
        "nothing": ["1"],
    },
    GROUP_TYPE: {
        "consumer.session.timeout.ms": ["45000", "50000", "1", "x", None],
        "consumer.heartbeat.interval.ms": ["5000", "6000", "1", "99999999"],
        "nothing": ["1"],
    },
    METRICS_TYPE: {
        "interval.ms": ["5000", "100", "99", "3600001", "x"],
        "metrics": ["a.", "a.,b.", "", "*"],
        "match": ["client_id=a", "client_id=(", "nothing=1", "client_id=a,client_id=b"],
        "nothing": ["1"],
    },
}
"""Settings and their values, good and bad, by type of resource."""
LISTS = {"cleanup.policy", "leader.replication.throttled.replicas", "log.cleanup.policy", "metrics"}
"""The settings with a list, to which `APPEND` and `SUBTRACT` apply."""
ADDRESS = "10.0.0.1"
ENTITIES: tuple[dict[str, str | None], ...] = (
    *[{"client-id": "client"}] * 3,
    {"user": "user"},
    {"user": "user", "client-id": "client"},
    {"user": "user", "client-id": None},
    {"ip": ADDRESS},
    {"ip": "nowhere"},
    {"user": ""},
    {"user": "user", "ip": ADDRESS},
    {"group": "group"},
    {},
)
QUOTAS: dict[str, list[float]] = {
    "producer_byte_rate": [1000.0, 1000.5, 0.0, -1.0, 1e19],
    "consumer_byte_rate": [2000.0, 1e-9],
    "request_percentage": [50.0, 0.5, 0.0],
    "controller_mutation_rate": [5.0, 0.1],
    "connection_creation_rate": [7.0, 0.5],
    "nothing": [1.0],
}
EXACT, DEFAULT = range(2)
"""How a component of DescribeClientQuotas selects entities."""
BROKER = 1
"""The broker that gets all requests, because a broker describes only its own settings."""


class SettingsWriter:
    """A generator of one conversation about settings and quotas."""

    def __init__(self, seed: int, release: str) -> None:
        self.chance, self.release = Random(seed), release

    def write(self) -> tuple[Step, ...]:
        return tuple(self._step() for _ in range(self.chance.randint(8, 20)))

    def _step(self) -> Step:
        kinds = [self._alter] * 6 + [self._describe] * 4 + [self._replace] + [self._alter_quotas] * 4
        return self.chance.choice([*kinds, *[self._describe_quotas] * 3])()

    def _version(self, key: ApiKey) -> int:
        low, high = versions(self.release)[key]
        return self.chance.randint(low, high)

    def _alter(self) -> Step:
        resource = self.chance.choice(RESOURCES)
        names = list(VALUES.get(resource[0], VALUES[TOPIC_TYPE]))
        changes = [
            self._change(resource[0], self.chance.choice(names)) for _ in range(self.chance.choice([1, 1, 1, 2]))
        ]
        return "alter", {
            "version": self._version(ApiKey.INCREMENTAL_ALTER_CONFIGS),
            "resource": resource,
            "changes": changes,
            "validate_only": self.chance.random() < 0.15,
        }

    def _change(self, type_: int, name: str) -> tuple[str, int, str | None]:
        value = self.chance.choice(VALUES.get(type_, VALUES[TOPIC_TYPE])[name])
        operations = [SET] * 5 + [DELETE] * 2 + ([APPEND, SUBTRACT] * 3 if name in LISTS else [])
        return name, self.chance.choice([*operations, *([APPEND, 7] * (self.chance.random() < 0.05))]), value

    def _replace(self) -> Step:
        """Choose a request that replaces all settings of a topic, with the older API."""
        names = self.chance.sample(list(VALUES[TOPIC_TYPE]), self.chance.choice([0, 1, 2]))
        settings = [(name, self.chance.choice(VALUES[TOPIC_TYPE][name])) for name in names]
        return "replace", {
            "version": self._version(ApiKey.ALTER_CONFIGS),
            "topic": self.chance.choice([TOPIC, TOPIC, TOPIC, MISSING]),
            "settings": settings,
            "validate_only": self.chance.random() < 0.2,
        }

    def _describe(self) -> Step:
        """Choose the settings to describe. All those of a broker are not compared: addresses, folders and roles differ."""
        resource = self.chance.choice(RESOURCES)
        keys = list(VALUES.get(resource[0], {}))
        return "describe", {
            "version": self._version(ApiKey.DESCRIBE_CONFIGS),
            "resource": resource,
            "keys": keys if resource[0] == BROKER_TYPE else self.chance.choice([keys, keys, keys[:2], []]),
            "synonyms": self.chance.random() < 0.4,
        }

    def _alter_quotas(self) -> Step:
        names = self.chance.sample(list(QUOTAS), self.chance.choice([1, 1, 1, 2]))
        return "alter_quotas", {
            "version": self._version(ApiKey.ALTER_CLIENT_QUOTAS),
            "entity": self.chance.choice(ENTITIES),
            "changes": [(name, self.chance.choice(QUOTAS[name]), self.chance.random() < 0.2) for name in names],
            "validate_only": self.chance.random() < 0.15,
        }

    def _describe_quotas(self) -> Step:
        entity = self.chance.choice(ENTITIES)
        components = [(kind, self.chance.choice([EXACT] * 6 + [DEFAULT]), name) for kind, name in entity.items()]
        if self.chance.random() < 0.1:
            components += [("client-id", 7, None)]
        return "describe_quotas", {
            "version": self._version(ApiKey.DESCRIBE_CLIENT_QUOTAS),
            "components": components,
            "strict": self.chance.random() < 0.5,
        }


class SettingsPlayer:
    """A conversation on one subject: a topic, a client, a user, a group and a subscription of its own, and a topic whose settings are the barrier."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.shown = Shown()
        self.names: dict[str, str] = {}
        for name in (MISSING, "client", "user", "group", "metrics"):
            self._name(name, subject.new_name(name.replace(" ", "-")))
        self._name(TOPIC, new_topic(subject).name)
        self.barrier = new_topic(subject).name
        self.changes = 0
        self._reset()

    def _name(self, meaning: str, name: str) -> None:
        self.names[meaning] = name
        self.shown.add(name, meaning)

    def answered(self, step: Step) -> Any:
        kind, arguments = step
        response = getattr(self, f"_{kind}")(**arguments)
        if kind in ("alter", "replace", "alter_quotas"):
            self._wait()
        return self.shown.plain(response)

    def _ask(self, request: Any, version: int) -> Any:
        return self.subject.ask_once(request, version, BROKER)

    def _reset(self) -> None:
        """Delete what earlier conversations have set for brokers and addresses, which have no names of their own."""
        changes = [
            AlterableConfig(name, DELETE, None)
            for name in VALUES[BROKER_TYPE]
            if name not in ("broker.rack", "nothing")
        ]
        resources = [AlterConfigsResource(BROKER_TYPE, name, list(changes)) for name in ("1", "")]
        self._ask(IncrementalAlterConfigsRequest(resources), 1)
        address = [AlterClientQuotasRequestEntityData("ip", ADDRESS)]
        removed = [OpData("connection_creation_rate", 0.0, True)]
        self._ask(AlterClientQuotasRequest([AlterClientQuotasRequestEntryData(address, removed)]), 1)
        self._wait()

    def _wait(self) -> None:
        """Wait until the broker has applied all earlier changes: brokers apply changes in their order, so one more must be visible there."""
        self.changes += 1
        value = str(1_000_000 + self.changes)
        config = AlterableConfig("retention.ms", SET, value)
        self._ask(IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC_TYPE, self.barrier, [config])]), 1)
        request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC_TYPE, self.barrier, ["retention.ms"])])
        wait_until(
            self.subject, lambda: self._ask(request, 4).results[0].configs[0].value == value, "a change is visible"
        )

    # Steps

    def _alter(
        self,
        version: int,
        resource: tuple[int, str],
        changes: list[tuple[str, int, str | None]],
        validate_only: bool,
    ) -> Any:
        type_, name = resource
        configs = [AlterableConfig(*change) for change in changes]
        requested = AlterConfigsResource(type_, self.names.get(name, name), configs)
        return self._ask(IncrementalAlterConfigsRequest([requested], validate_only), version)

    def _replace(self, version: int, topic: str, settings: list[tuple[str, str | None]], validate_only: bool) -> Any:
        configs = [alter_configs.AlterableConfig(*setting) for setting in settings]
        requested = alter_configs.AlterConfigsResource(TOPIC_TYPE, self.names[topic], configs)
        return self._ask(alter_configs.AlterConfigsRequest([requested], validate_only), version)

    def _describe(self, version: int, resource: tuple[int, str], keys: list[str], synonyms: bool) -> Any:
        type_, name = resource
        requested = DescribeConfigsResource(type_, self.names.get(name, name), keys)
        response = self._ask(DescribeConfigsRequest([requested], synonyms and version >= 1), version)
        for result in response.results:
            result.configs.sort(key=lambda config: config.name)
        return response

    def _alter_quotas(
        self,
        version: int,
        entity: dict[str, str | None],
        changes: list[tuple[str, float, bool]],
        validate_only: bool,
    ) -> Any:
        parts = [AlterClientQuotasRequestEntityData(kind, self._entity(name)) for kind, name in entity.items()]
        entry = AlterClientQuotasRequestEntryData(parts, [OpData(*change) for change in changes])
        return self._ask(AlterClientQuotasRequest([entry], validate_only), version)

    def _describe_quotas(self, version: int, components: list[tuple[str, int, str | None]], strict: bool) -> Any:
        parts = [
            ComponentData(kind, match, self._entity(name) if match == EXACT else None)
            for kind, match, name in components
        ]
        response = self._ask(DescribeClientQuotasRequest(parts, strict), version)
        for entry in response.entries or []:
            entry.values.sort(key=lambda value: value.key)  # the size of Kafka's hash table depends on earlier changes
        if response.entries is not None:
            mine = [e for e in response.entries if any(part.entity_name in self._own_names for part in e.entity)]
            response.entries = sorted(mine, key=lambda entry: [str(part) for part in entry.entity])
        return response

    @property
    def _own_names(self) -> set[str | None]:
        """The names of the entities of this conversation. Other entities belong to earlier conversations and are not compared."""
        return {*self.names.values(), ADDRESS}

    def _entity(self, name: str | None) -> str | None:
        return self.names.get(name, name) if name is not None else None
