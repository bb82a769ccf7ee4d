"""The command `kafkaproto conformance`: runs the conformance tests against a running cluster and prints a table of their outcomes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest

from kafkaproto.conformance import card, plugin
from kafkaproto.conformance.foreign import Foreign, NoCluster, brokers_at, check_reachable
from kafkaproto.conformance.options import parser
from kafkaproto.conformance.semantics import AUTO, KAFKA, KIP, semantics_of
from kafkaproto.conformance.subject import settings_of

EXPECTED = {
    KAFKA: "where Kafka's code and its design documents differ, the tests expect what the code does",
    KIP: "where Kafka's code and its design documents differ, the tests expect what the documents say",
}


def main(arguments: Sequence[str]) -> int:
    """Run the conformance suite with these command-line arguments, and return the exit status.

    The status is 0 if tests passed and none failed, 1 if a test failed, 2 to 4 if the suite could not run, and 5 if no test ran.
    """
    options, pytest_arguments = parser().parse_known_args(arguments)
    if options.settings:
        return print_settings(options.settings)
    if options.bootstrap is None:
        parser().error("--bootstrap HOST:PORT is missing: the address of one broker of the cluster to test")
    try:
        brokers = brokers_at(plugin.addresses(options.bootstrap), options.semantics)
        check_reachable(brokers, options.semantics)
    except pytest.UsageError as error:
        parser().error(str(error))
    except NoCluster as error:
        sys.stderr.write(f"kafkaproto conformance: {error}\n")
        return pytest.ExitCode.USAGE_ERROR
    supported = semantics_of(Foreign(brokers, options.semantics))
    semantics = supported if options.semantics == AUTO else options.semantics
    sys.stdout.write(f"{EXPECTED[semantics]} (--semantics {semantics})\n")
    sys.stdout.flush()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins installed for other tests must not affect this run
    outcomes = Outcomes()
    status = pytest.main(
        [
            *map(str, plugin.modules()),
            # Ignore the pytest settings and conftest of the current folder.
            f"--config-file={os.devnull}",
            f"--rootdir={plugin.FOLDER}",
            f"--confcutdir={plugin.FOLDER}",
            *("--strict-markers", "-q", "-r", "fE", "-p", "no:cacheprovider"),
            f"--bootstrap={options.bootstrap}",
            f"--semantics={semantics}",
            f"--slack-ms={options.slack_ms}",
            *pytest_arguments,
        ],
        [plugin, card, outcomes],  # passed as modules: with -p, pytest would warn that they are already imported
    )
    if status == pytest.ExitCode.OK and outcomes.seen == {"skipped"}:
        sys.stderr.write(
            "kafkaproto conformance: all tests were skipped, because the cluster does not have what they need (see above); "
            "--settings PROFILE prints broker settings that tests need\n"
        )
        return pytest.ExitCode.NO_TESTS_COLLECTED
    if status == pytest.ExitCode.TESTS_FAILED and semantics != supported:
        sys.stderr.write(
            f"kafkaproto conformance: this cluster seems to follow --semantics {supported}; run again with --semantics {supported}\n"
        )
    return int(status)


class Outcomes:
    """A pytest plugin that collects outcomes of tests. `seen`: the different outcomes ("passed", "failed", "skipped") that occurred in the run."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self.seen.add(report.outcome)


def print_settings(profile: str) -> int:
    """Print the broker settings that the tests of a profile need, as a properties file. Returns exit status 0."""
    sys.stdout.writelines(f"{key}={value}\n" for key, value in settings_of(profile).items())
    return 0
