"""Options of `kafkaproto conformance`. This module does not import pytest, so that `--help` works without it."""

from __future__ import annotations

import argparse

from kafkaproto.arguments import Parser
from kafkaproto.conformance.subject import SLACK_MS, profiles

NEEDS_HELP = """Most tests need three brokers with the ids 0, 1 and 2. Some tests also need certain broker settings,
or an API version that not every Kafka release has. If the cluster lacks what a test needs, the test
does not run, and its outcome is "not prepared"; the last lines of the output say what it needs and
what the cluster has. A cluster of one broker needs the setting offsets.topic.replication.factor=1."""
PROFILES_HELP = """Profiles for --settings. A profile has the broker settings that some of the tests need. The profiles
contradict each other: start a cluster with the settings of one profile, test it, and continue with
the next. The list says what the settings of each profile do:
  default              what most tests need
  append-linger        the group coordinator collects records for 1.5 seconds before it writes them
  commit-acks          the group coordinator fails to store the offsets that groups commit and the
                       assignments of groups, because offsets.commit.required.acks is 2 and a write
                       may only have acks -1, 0 or 1; the profile changes nothing from Kafka 4.0 on,
                       where this setting does not exist
  consumer             groups may use the new protocol (KIP-848)
  consumer-limits      groups of the new protocol have at most three members and short sessions
  groups               groups have at most two members, and the first rebalance of a new group is
                       delayed, so that more members can join
  lag                  a follower that lags leaves the in-sync replicas after 1.5 seconds
  maintenance          retention and compaction run several times per second, and committed
                       offsets expire after a minute
  migration            group.consumer.migration.policy is bidirectional: a group may have members
                       of the classic and of the new protocol
  migration-disabled, migration-downgrade, migration-upgrade
                       group.consumer.migration.policy is disabled, downgrade or upgrade, as the
                       name of the profile says
  replicated-offsets   the topic __consumer_offsets has three replicas
  small                limits are small: 1 KiB per fetch, 64 KiB per request, 16 fetch sessions, and
                       two seconds until an idle connection is closed
  transactions         transactions are aborted soon after their timeout, and transactional ids and
                       producer ids expire after a few seconds"""
STATUSES = """exit status:
  0  no test failed
  1  a test failed
  2  an option is invalid, or the run was interrupted
  3  pytest had an internal error
  4  the cluster cannot be tested, or an option of pytest is invalid
  5  no test ran"""


def parser(command: str = "conformance") -> argparse.ArgumentParser:
    """Return the parser of the command's options. pytest gets the arguments that the parser does not know."""
    root = Parser(
        prog=f"kafkaproto {command}",
        description="Test whether a running cluster follows the rules of Kafka. Print the outcome of each test on\n"
        "one line.\n"
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
        "(kafka). auto sends two CreateTopics requests that only validate, so that nothing is created. It means kip if the cluster "
        "accepts leader.replication.throttled.replicas=0-1, which only the documents allow, and rejects the invalid value 0; "
        "otherwise it means kafka (default: auto)",
    )
    root.add_argument(
        "--slack-ms",
        metavar="N",
        type=slack_ms,
        default=SLACK_MS,
        help="how many milliseconds later than expected a response may arrive; raise it if the machine is busy "
        f"(default: {SLACK_MS:.0f})",
    )
    root.add_argument(
        "--settings",
        metavar="PROFILE",
        choices=profiles(),
        help="print the broker settings of a profile in the format of server.properties, and run no test; the profiles are "
        "listed below",
    )
    return root


def slack_ms(text: str) -> float:
    """Return the value of the option `--slack-ms`. Raises ArgumentTypeError if it is not a number of at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(
            f"must be a number of milliseconds of at least 0, for example 1000 (got {text!r})"
        )
    return value
