"""Client telemetry for tests: subscriptions to client metrics, and the metrics that clients pushed to the brokers (KIP-714)."""

from __future__ import annotations

from kafkaproto.broker.config.client_metrics import SubscriptionResource
from kafkaproto.broker.config.dynamic import Change, Operation, change
from kafkaproto.broker.config.values import as_text
from kafkaproto.broker.observe.telemetry_seen import TelemetrySeen
from kafkaproto.broker.testing.arguments import check_text
from kafkaproto.broker.testing.base import Base
from kafkaproto.broker.testing.tracebacks import is_hidden

__tracebackhide__ = is_hidden


class TelemetryMethods(Base):
    """A base class of test clusters, with methods that subscribe to client metrics and return the metrics that clients pushed."""

    def alter_client_metrics(self, name: str, **configs: object) -> None:
        """Change settings of a subscription to client metrics: `alter_client_metrics("all", metrics="*", interval_ms=1000)`.

        name: the name of the subscription. Write dots in the names of settings as underscores. The value None removes a setting; a subscription
        without settings does not exist. Raises KafkaError with the reason for an invalid setting.
        """
        check_text("name", name, "all")
        changes = [
            Change(key.replace("_", "."), Operation.DELETE if value is None else Operation.SET, as_text(value))
            for key, value in configs.items()
        ]
        self._run(lambda: change(SubscriptionResource(self.state, name), changes, self.state.strict_kip))

    def telemetry(self, client_id: str | None = None) -> list[TelemetrySeen]:
        """Return the metrics that clients pushed to the brokers, oldest push first. Needs `kafkaproto.client.telemetry.enable=true`.

        client_id: the `client.id` of the clients whose pushes to return; None for all. The cluster keeps the last 1,000 pushes, or fewer if they have
        more than 16 MiB together.
        """
        if client_id is not None:
            check_text("client_id", client_id, "orders-service")
        return self._read(lambda: self.state.telemetry_history.pushes(client_id))
