"""Options of `kafkaproto conformance`. This module does not import pytest, so that `--help` works without it."""

from __future__ import annotations

import argparse

from kafkaproto.arguments import Parser
from kafkaproto.conformance.subject import profiles

PROFILES_HELP = """Profiles of --settings, each for a run of its own:
  default              most tests
  consumer             groups of the new protocol (KIP-848)
  consumer-limits      the same, with at most three members and short sessions
  groups               groups of at most two members, whose first rebalance waits for more members
  lag                  followers that soon leave the in-sync replicas
  maintenance          retention and compaction within a test
  migration            groups with members of both protocols
  migration-disabled, migration-downgrade, migration-upgrade
                       the same, with the group.consumer.migration.policy of this name
  replicated-offsets   an offsets topic with three replicas
  small                small limits, few fetch sessions, short idle times
  transactions         transactions that time out soon, ids that expire soon
"""


def parser(command: str = "conformance") -> argparse.ArgumentParser:
    """Return the parser of the command's options. pytest gets the arguments that the parser does not know."""
    root = Parser(
        prog=f"kafkaproto {command}",
        description="Test a running Kafka cluster and print the outcome of each rule.\n"
        "Other options go to pytest, for example -k quotas or -x.",
        epilog="Most tests need three brokers with the ids 0, 1 and 2. A test that needs more, such as a setting or a version of an API,\n"
        "is reported as not prepared if the cluster does not have it; the last lines name what the test needs and what the\n"
        "cluster has. The versions of a cluster are those of its ApiVersions response. With one broker, set\n"
        "offsets.topic.replication.factor=1.\n"
        f"{PROFILES_HELP}"
        "exit status: 0 no test failed; 1 a test failed; 2 to 4 the suite did not run; 5 no test ran",
        allow_abbrev=False,
        examples=[
            ("test the cluster of this broker", "kafkaproto conformance --bootstrap 127.0.0.1:9092"),
            ("only tests with quota in their name", "kafkaproto conformance --bootstrap 127.0.0.1:9092 -k quota"),
            ("write the settings that most tests need", "kafkaproto conformance --settings default"),
        ],
    )
    root.add_argument("--bootstrap", metavar="HOST:PORT", help="address of one broker of the cluster")
    root.add_argument(
        "--semantics",
        choices=("auto", "kip", "kafka"),
        default="auto",
        help="expect the behaviour of Kafka's code (kafka) or of its design documents (kip) where they differ;\n"
        "auto is kip if the cluster accepts leader.replication.throttled.replicas=0-1 for a topic and rejects 0, and otherwise\n"
        "kafka (default: auto)",
    )
    root.add_argument(
        "--settings",
        metavar="PROFILE",
        choices=profiles(),
        help="print the broker settings of a profile, which some tests need, and exit",
    )
    return root
