"""Options of `kafkaproto conformance`. This module does not import pytest, so that `--help` works without it."""

from __future__ import annotations

import argparse

from kafkaproto.arguments import Parser
from kafkaproto.conformance.subject import profiles

NEEDS_HELP = """Most tests need three brokers with the ids 0, 1 and 2. Some tests also need certain broker settings,
or an API version that not every Kafka release has. If the cluster lacks what a test needs, the test
does not run, and its outcome is "not prepared"; the last lines of the output say what it needs and
what the cluster has. A cluster of one broker needs the setting offsets.topic.replication.factor=1."""
PROFILES_HELP = """Profiles of --settings. Each has the settings that some of the tests need. The profiles contradict
each other: start a cluster with the settings of one profile, test it, and continue with the next.
  default              most tests
  consumer             groups of the new protocol (KIP-848)
  consumer-limits      groups of the new protocol with at most three members and short sessions
  groups               groups of at most two members, whose first rebalance waits for more members
  lag                  followers that lag leave the in-sync replicas after 1.5 seconds
  maintenance          retention and compaction run several times per second, and committed
                       offsets expire after a minute
  migration            groups that have members of the classic and of the new protocol
  migration-disabled, migration-downgrade, migration-upgrade
                       groups with this value of group.consumer.migration.policy
  replicated-offsets   the topic __consumer_offsets has three replicas
  small                small limits: 1 KiB per fetch, 64 KiB per request, 16 fetch sessions, and
                       connections that may be idle for two seconds
  transactions         transactions are aborted soon after their timeout, and transactional ids and
                       producer ids expire after a few seconds"""
STATUSES = """exit status:
  0  no test failed
  1  a test failed
  2  an option is invalid, or the run was interrupted
  3  pytest failed
  4  the cluster cannot be tested, or an option of pytest is invalid
  5  no test ran"""


def parser(command: str = "conformance") -> argparse.ArgumentParser:
    """Return the parser of the command's options. pytest gets the arguments that the parser does not know."""
    root = Parser(
        prog=f"kafkaproto {command}",
        description="Test whether a running cluster keeps the rules of Kafka. Print the outcome of each test in one line.\n"
        "All options that are not listed here go to pytest, for example -x to stop after the first failure.",
        epilog=f"{NEEDS_HELP}\n\n{PROFILES_HELP}\n\n{STATUSES}",
        allow_abbrev=False,
        examples=[
            (
                "test the cluster to which the broker at 127.0.0.1:9092 belongs",
                "kafkaproto conformance --bootstrap 127.0.0.1:9092",
            ),
            (
                "run only the tests with quota in their name",
                "kafkaproto conformance --bootstrap 127.0.0.1:9092 -k quota",
            ),
            ("print the broker settings that most tests need", "kafkaproto conformance --settings default"),
        ],
    )
    root.add_argument("--bootstrap", metavar="HOST:PORT", help="address of one broker of the cluster to test")
    root.add_argument(
        "--semantics",
        choices=("auto", "kip", "kafka"),
        default="auto",
        help="behaviour to expect where Kafka's design documents and its code differ: that of the documents (kip) or of the code "
        "(kafka). auto asks the cluster: if it accepts the topic setting leader.replication.throttled.replicas=0-1, which only "
        "the documents allow, and rejects 0, which neither allows, auto means kip, otherwise kafka (default: auto)",
    )
    root.add_argument(
        "--settings",
        metavar="PROFILE",
        choices=profiles(),
        help="print the broker settings of a profile in the format of server.properties, and run no test; the profiles are "
        "listed below",
    )
    return root
