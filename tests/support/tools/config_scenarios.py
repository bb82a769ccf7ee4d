"""Commands of kafka-configs: settings of topics, brokers and groups, quotas, SCRAM credentials and subscriptions to client metrics."""

from __future__ import annotations

from tests.support.tools.steps import SERVER, Scenario, Step, created, same

CONFIGS = Scenario(
    "kafka-configs",
    same("kafka.admin.ConfigCommand"),
    (
        created("tools-c", "0"),
        Step(
            "alter a topic",
            f"{SERVER} --alter --topic tools-c --add-config retention.ms=2000,cleanup.policy=[compact,delete]",
        ),
        Step("describe a topic", f"{SERVER} --describe --topic tools-c", settles=True),
        Step("describe all settings of a topic", f"{SERVER} --describe --all --topic tools-c"),
        Step(
            "alter a topic with a bad value",
            f"{SERVER} --alter --topic tools-c --add-config retention.ms=x",
        ),
        Step(
            "alter a missing topic",
            f"{SERVER} --alter --topic tools-none --add-config retention.ms=1",
        ),
        Step("delete a setting of a topic", f"{SERVER} --alter --topic tools-c --delete-config retention.ms"),
        Step("delete a setting that is not set", f"{SERVER} --alter --topic tools-c --delete-config segment.ms"),
        Step("describe a topic", f"{SERVER} --describe --topic tools-c", settles=True),
        Step("alter a broker", f"{SERVER} --alter --broker 1 --add-config log.cleaner.threads=2"),
        Step("describe a broker", f"{SERVER} --describe --broker 1", settles=True),
        Step("alter all brokers", f"{SERVER} --alter --broker-defaults --add-config message.max.bytes=500000"),
        Step("describe all brokers", f"{SERVER} --describe --broker-defaults", settles=True),
        Step(
            "alter a broker with a bad value",
            f"{SERVER} --alter --broker 1 --add-config num.io.threads=0",
        ),
        Step("alter a read-only setting", f"{SERVER} --alter --broker 1 --add-config broker.rack=r9"),
        Step("delete a setting of a broker", f"{SERVER} --alter --broker 1 --delete-config log.cleaner.threads"),
        Step(
            "delete a setting of all brokers", f"{SERVER} --alter --broker-defaults --delete-config message.max.bytes"
        ),
        Step(
            "describe all settings of a broker",
            f"{SERVER} --describe --all --broker 1",
            patterns=("log directories", "settings of the controller"),
            settles=True,
        ),
        Step("alter a client", f"{SERVER} --alter --client tools --add-config producer_byte_rate=5000"),
        Step("describe a client", f"{SERVER} --describe --client tools", settles=True),
        Step("delete a quota", f"{SERVER} --alter --client tools --delete-config producer_byte_rate"),
        Step("alter a topic from a file", f"{SERVER} --alter --topic tools-c --add-config-file {{file:settings}}"),
        Step("describe a topic", f"{SERVER} --describe --entity-type topics --entity-name tools-c", settles=True),
        Step(
            "alter a group",
            f"{SERVER} --alter --entity-type groups --entity-name tools --add-config consumer.session.timeout.ms=50000",
        ),
        Step("describe a group", f"{SERVER} --describe --entity-type groups --entity-name tools", settles=True),
        Step("describe all settings of a group", f"{SERVER} --describe --all --entity-type groups --entity-name tools"),
        Step("describe all groups", f"{SERVER} --describe --entity-type groups", unordered=True),
    ),
    {"settings": "retention.ms=3000\nmax.message.bytes=4000\n"},
)

_ADD, _DELETE, _SHOW = f"{SERVER} --alter --add-config", f"{SERVER} --alter --delete-config", f"{SERVER} --describe"
ENTITIES = Scenario(
    "kafka-configs of users, addresses and clients",
    same("kafka.admin.ConfigCommand"),
    (
        Step("alter a user", f"{_ADD} producer_byte_rate=1000,request_percentage=50 --user tools-u"),
        Step("alter all users", f"{_ADD} consumer_byte_rate=2000 --user-defaults"),
        Step("alter a user with a client", f"{_ADD} consumer_byte_rate=3000 --user tools-u --client tools-c"),
        Step("alter all clients", f"{_ADD} controller_mutation_rate=5 --client-defaults"),
        Step("alter a user with a bad value", f"{_ADD} producer_byte_rate=x --user tools-u"),
        Step("alter a user with an unknown quota", f"{_ADD} nope=1 --user tools-u"),
        Step("describe a user", f"{_SHOW} --user tools-u", settles=True),
        Step("describe all users", f"{_SHOW} --entity-type users", unordered=True),
        Step("describe the default of users", f"{_SHOW} --user-defaults"),
        Step("describe a user with a client", f"{_SHOW} --user tools-u --client tools-c"),
        Step("describe the default of clients", f"{_SHOW} --client-defaults"),
        Step("delete a quota that is not set", f"{_DELETE} consumer_byte_rate --user tools-u"),
        Step("delete a quota", f"{_DELETE} producer_byte_rate,request_percentage --user tools-u"),
        Step("delete a quota", f"{_DELETE} consumer_byte_rate --user-defaults"),
        Step("delete a quota", f"{_DELETE} consumer_byte_rate --user tools-u --client tools-c"),
        Step("delete a quota", f"{_DELETE} controller_mutation_rate --client-defaults"),
        Step("add a SCRAM credential", f"{_ADD} SCRAM-SHA-256=[iterations=4096,password=secret] --user tools-s"),
        Step("add a SCRAM credential", f"{_ADD} SCRAM-SHA-512=[iterations=1,password=secret] --user tools-s"),
        Step("describe a SCRAM credential", f"{_SHOW} --user tools-s", settles=True),
        Step("delete a SCRAM credential", f"{_DELETE} SCRAM-SHA-256 --user tools-s"),
        Step("delete a missing SCRAM credential", f"{_DELETE} SCRAM-SHA-512 --user tools-s"),
        Step("alter an address", f"{_ADD} connection_creation_rate=7 --ip 10.0.0.1"),
        Step("alter all addresses", f"{_ADD} connection_creation_rate=9 --ip-defaults"),
        Step("describe an address", f"{_SHOW} --ip 10.0.0.1", settles=True),
        Step("describe all addresses", f"{_SHOW} --entity-type ips", unordered=True),
        Step("delete a rate", f"{_DELETE} connection_creation_rate --ip 10.0.0.1"),
        Step("delete a rate", f"{_DELETE} connection_creation_rate --ip-defaults"),
        Step(
            "alter a subscription",
            f"{_ADD} interval.ms=5000,metrics=[a.,b.] --entity-type client-metrics --entity-name tools-m",
        ),
        Step("describe a subscription", f"{_SHOW} --entity-type client-metrics --entity-name tools-m", settles=True),
        Step("describe all subscriptions", f"{_SHOW} --entity-type client-metrics"),
        Step(
            "delete settings of a subscription",
            f"{_DELETE} interval.ms,metrics --entity-type client-metrics --entity-name tools-m",
        ),
        created("tools-w", "0", "--config retention.ms=7000"),
        Step("describe settings of all brokers", f"{_SHOW} --entity-type brokers", unordered=True),
    ),
)

_LEVEL = f"{SERVER} --alter --broker-logger 1"
LOGGERS = Scenario(
    "kafka-configs of loggers",
    same("kafka.admin.ConfigCommand"),
    (
        Step("alter the level of a logger", f"{_LEVEL} --add-config root=WARN"),
        Step("describe loggers", f"{SERVER} --describe --broker-logger 1", patterns=("other loggers",)),
        Step("alter a logger to an unknown level", f"{_LEVEL} --add-config root=LOUD"),
        Step("alter the level of a missing logger", f"{_LEVEL} --add-config nope=WARN"),
        Step("delete the level of the root logger", f"{_LEVEL} --delete-config root"),
        Step("delete the level of a missing logger", f"{_LEVEL} --delete-config nope"),
        Step("alter the level of a logger", f"{_LEVEL} --add-config root=INFO"),
        Step(
            "describe loggers",
            f"{SERVER} --describe --entity-type broker-loggers --entity-name 1",
            patterns=("other loggers",),
        ),
    ),
)
