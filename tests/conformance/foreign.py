"""Whether a cluster that we did not start has the settings that a test needs: asked with DescribeConfigs."""

from __future__ import annotations

import pytest

from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.conformance.subjects import Foreign, settings_of

BROKER = 4
RIVALS = ("kfake", "librdkafka-mock")


def check_profile(subject: Foreign, profile: str) -> None:
    """Skips the test, naming the settings, unless the cluster has those of the profile. Rivals have the one they have."""
    if subject.name in RIVALS:
        if profile != "default":
            pytest.skip(f"not prepared: needs the profile {profile}, and a rival takes no settings")
        return
    missing = [f"{key}={value}" for key, value in differing(subject, settings_of(profile)).items()]
    if missing:
        pytest.skip(f"not prepared: needs {', '.join(missing)}")


def differing(subject: Foreign, wanted: dict[str, str]) -> dict[str, str]:
    """Of the wanted settings those that the first broker has not."""
    connection = subject.connect()
    request = DescribeConfigsRequest([DescribeConfigsResource(BROKER, "0", list(wanted))])
    [found] = subject.ask(connection, request, 2).results
    assert found.error_code == 0, (found.error_code, found.error_message)
    told = {config.name: config.value for config in found.configs}
    return {key: value for key, value in wanted.items() if told.get(key) != value}
