"""What kafka-configs is asked about quotas, and what it prints of any broker that is right: ours, and Apache Kafka (`make long`)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.support.clients.kafka_tools import run_tool

TOOL = "kafka.admin.ConfigCommand"
USERS, CLIENTS, IPS, TOPICS = (f"--entity-type {kind}" for kind in ("users", "clients", "ips", "topics"))
ALICE, ETL = "--entity-name alice", "--entity-name etl"
AT_ONCE = 2

_OF_ALICE = "Quota configs for user-principal 'alice' are request_percentage=12.5, producer_byte_rate=1000.0"
CONVERSATION: list[dict[str, list[str]]] = [
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
"""Command to the lines that it prints, sorted; the commands of one part do not touch each other."""


def configs(bootstrap: str, *commands: str) -> list[str]:
    """What the tool prints for each, a few at a time."""

    def run(command: str) -> str:
        return run_tool(TOOL, "--bootstrap-server", bootstrap, *command.split()).strip()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, commands))


def talk(bootstrap: str) -> list[dict[str, list[str]]]:
    """The same as CONVERSATION, of one cluster."""
    return [
        {command: sorted(said.splitlines()) for command, said in zip(part, configs(bootstrap, *part), strict=True)}
        for part in CONVERSATION
    ]
