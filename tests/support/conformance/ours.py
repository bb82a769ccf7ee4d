"""This broker on sockets as a subject, on the wall clock or on a manual clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.conformance.client import Answer, Connection
from kafkaproto.conformance.served import Newer
from kafkaproto.conformance.subject import WallClock, settings_of
from kafkaproto.testing import cluster
from tests.support.conformance.virtual import NEWER_RELEASE, RELEASE

TICK_SECONDS = 0.02


class Ours(WallClock):
    """Three brokers of this project in a thread, on the wall clock. changes: settings that replace those of the profile."""

    clock = "system"
    slack_ms = 500.0
    clock_slack_ms = 20.0
    jitter_ms = 0.0

    def __init__(
        self, profile: str, semantics: str, release: str = RELEASE, changes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self.name, self.semantics = f"ours-{semantics}", semantics
        self._stack = ExitStack()
        config: dict[str, object] = {**settings_of(profile), **(changes or {})}
        config |= {f"{i}.broker.rack": f"r{i}" for i in range(3)}
        self.cluster = self._stack.enter_context(
            cluster(3, config=config, profile="kafka", semantics=semantics, clock=self.clock, release=release)  # type: ignore[arg-type]
        )
        addresses = [address.rpartition(":") for address in self.cluster.bootstrap_servers]
        self.bootstrap = [(host, int(port)) for host, _, port in addresses]

    def stop_broker(self, broker_id: int) -> None:
        self.cluster.broker(broker_id).stop()

    def start_broker(self, broker_id: int) -> None:
        self.cluster.broker(broker_id).start()

    def hold_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self.cluster.follower(topic, partition, broker_id).hold()

    def release_follower(self, topic: str, partition: int, broker_id: int) -> None:
        self.cluster.follower(topic, partition, broker_id).release()

    def restore(self) -> None:
        for broker_id in range(len(self.bootstrap)):
            self.start_broker(broker_id)

    def stop(self) -> None:
        self._stack.close()


class OursManual(Ours):
    """Three brokers on a clock that moves only while a test waits, so that every time is exact."""

    clock = "manual"
    slack_ms = early_ms = 0.0
    clock_slack_ms = 0.0

    def __init__(
        self, profile: str, semantics: str, release: str = RELEASE, changes: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(profile, semantics, release, changes)
        self.name = f"ours-{semantics}-manual"
        assert isinstance(self.cluster.state.clock, ManualClock)

    def now_ms(self) -> float:
        return float(self.cluster.clock.now_ms())

    def epoch_ms(self) -> int:
        return int(self.now_ms())

    def pass_ms(self, delta_ms: float) -> None:
        self.cluster.clock.advance(int(delta_ms))

    def answer_or_none(self, connection: Connection, within_ms: float) -> Answer | None:
        limit = self.now_ms() + within_ms
        while True:
            self.cluster.clock.advance(0)  # handle all requests sent so far and write their responses
            while (received := connection.take(TICK_SECONDS)) is None and self.cluster.run_in_loop(self._is_sending):
                """A sendfile takes real time and no virtual one."""
            if received is not None:
                return connection.decode(*received, self.now_ms())
            deadline = self.cluster.run_in_loop(self.cluster.state.timers.next_deadline_ms)
            if deadline is None or deadline > limit:
                self.pass_ms(max(0.0, limit - self.now_ms()))
                return None
            self.pass_ms(deadline - self.now_ms())

    @contextmanager
    def request_cost(self, api: str, cost_ms: float) -> Iterator[None]:
        self.cluster.set_request_cost(api, cost_ms)
        yield
        self.cluster.set_request_cost(api, 0)

    def _is_sending(self) -> bool:
        return self.cluster.server.loop.is_sending


class OursNewer(Newer, OursManual):
    """Three brokers on a manual clock that emulate Kafka 4.2."""

    release = NEWER_RELEASE

    def __init__(self, profile: str) -> None:
        super().__init__(profile, "kafka", self.release)
        self.name = f"ours-{self.release}"


class OursNewerOnWallClock(Newer, Ours):
    """Three brokers on the wall clock that emulate Kafka 4.2."""

    release = NEWER_RELEASE

    def __init__(self, profile: str) -> None:
        super().__init__(profile, "kafka", self.release)
        self.name = f"ours-{self.release}-on-wall-clock"
