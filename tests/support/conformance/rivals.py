"""kfake (of franz-go) and librdkafka's mock cluster, each as one broker for the conformance tests.

Both accept no settings and cannot be controlled, so tests that need several brokers or another profile do not run. Independent of the tests that use
them.
"""

from __future__ import annotations

import subprocess
from typing import Any

from benchmarks.rivals.kfake import built
from kafkaproto.conformance.foreign import Foreign


class Kfake(Foreign):
    """kfake in its own process, which ends when its stdin is closed. If a test crashes it, the next test starts a new one."""

    assigns = takes_settings = False

    def __init__(self, profile: str) -> None:
        super().__init__(self._start(), "kafka", "kfake")

    def _start(self) -> list[tuple[str, int]]:
        self._process = subprocess.Popen(
            [built()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        host, _, port = self._process.stdout.readline().strip().rpartition(":")
        return [(host, int(port))]

    def restore(self) -> None:
        if self._process.poll() is not None:
            self.bootstrap = self._start()

    def stop(self) -> None:
        self._process.communicate(timeout=10)


class LibrdkafkaMock(Foreign):
    """The mock cluster inside a confluent-kafka client. The mock cluster exists as long as the client, and its only broker has id 1."""

    creates = assigns = takes_settings = False
    first_id = 1
    metadata_version = 7  # its flexible responses have extra bytes

    def __init__(self, profile: str) -> None:
        from confluent_kafka.admin import AdminClient

        self._client: Any = AdminClient({"test.mock.num.brokers": "1"})
        [broker] = self._client.list_topics(timeout=10).brokers.values()
        super().__init__([(str(broker.host), broker.port)] * 2, "kafka", "librdkafka-mock")
        assert broker.id == self.first_id

    def stop(self) -> None:
        self._client = None
