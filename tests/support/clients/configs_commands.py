"""Commands of `kafka-configs` about quotas, and the output that Apache Kafka (`make long`) and this broker must both produce."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.support.clients.kafka_tools import run_tool

TOOL = "kafka.admin.ConfigCommand"
USERS, CLIENTS, IPS, TOPICS = (f"--entity-type {kind}" for kind in ("users", "clients", "ips", "topics"))
ALICE, ETL = "--entity-name alice", "--entity-name etl"
AT_ONCE = 2

_OF_ALICE = "Quota configs for user-principal 'alice' are request_percentage=12.5, producer_byte_rate=1000.0"
COMMANDS: list[dict[str, list[str]]] = [
    {
        f"--alter --add-config producer_byte_rate=1000,request_percentage=12.5 {USERS} {ALICE}": [
            "Completed updating config for user alice."
        ],
        f"--alter --add-config producer_byte_rate=1001 {USERS} {ALICE} {CLIENTS} {ETL}": [
            "Completed updating config for user alice."
        ],
        f"--alter --add-config producer_byte_rate=1002 {USERS} --entity-default {CLIENTS} --entity-default": [
            "Completed updating default config for users in the cluster."
        ],
        f"--alter --add-config controller_mutation_rate=0.5 {CLIENTS} --entity-default": [
            "Completed updating default config for clients in the cluster."
        ],
        f"--alter --add-config consumer_byte_rate=1004 {CLIENTS} {ETL}": ["Completed updating config for client etl."],
        f"--alter --add-config producer_byte_rate=1005 {USERS} --entity-default": [
            "Completed updating default config for users in the cluster."
        ],
        f"--alter --add-config connection_creation_rate=7 {IPS} --entity-name 127.0.0.9": [
            "Completed updating config for ip 127.0.0.9."
        ],
        f"--alter --add-config connection_creation_rate=8 {IPS} --entity-default": [
            "Completed updating default config for ips in the cluster."
        ],
    },
    {
        f"--describe {USERS}": [
            "Quota configs for the default user-principal are producer_byte_rate=1005.0",
            _OF_ALICE,
        ],
        f"--describe {USERS} {ALICE}": [_OF_ALICE],
        f"--describe {USERS} --entity-name nobody": [],
        f"--describe {USERS} {CLIENTS}": [
            "Quota configs for the default user-principal, the default client-id are producer_byte_rate=1002.0",
            "Quota configs for user-principal 'alice', client-id 'etl' are producer_byte_rate=1001.0",
        ],
        f"--describe {CLIENTS}": [
            "Quota configs for client-id 'etl' are consumer_byte_rate=1004.0",
            "Quota configs for the default client-id are controller_mutation_rate=0.5",
        ],
        f"--describe {IPS}": [
            "Quota configs for ip '127.0.0.9' are connection_creation_rate=7.0",
            "Quota configs for the default ip are connection_creation_rate=8.0",
        ],
    },
    {
        f"--alter --delete-config producer_byte_rate {USERS} {ALICE}": ["Completed updating config for user alice."],
        f"--alter --delete-config producer_byte_rate {USERS} {ALICE} {CLIENTS} {ETL}": [
            "Completed updating config for user alice."
        ],
        f"--alter --delete-config consumer_byte_rate {CLIENTS} {ETL}": ["Completed updating config for client etl."],
        f"--alter --delete-config connection_creation_rate {IPS} --entity-default": [
            "Completed updating default config for ips in the cluster."
        ],
    },
]
"""Maps each command to its sorted output lines. The commands of one part are independent of each other."""


def configs(bootstrap: str, *commands: str) -> list[str]:
    """Return the output of each command, running a few at a time."""

    def run(command: str) -> str:
        return run_tool(TOOL, "--bootstrap-server", bootstrap, *command.split()).strip()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, commands))


def run_commands(bootstrap: str) -> list[dict[str, list[str]]]:
    """Run all commands of `COMMANDS` against one cluster and return the commands with their output."""
    return [
        {command: sorted(output.splitlines()) for command, output in zip(part, configs(bootstrap, *part), strict=True)}
        for part in COMMANDS
    ]
