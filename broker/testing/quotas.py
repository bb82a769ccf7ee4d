"""The methods of a test cluster for quotas and forced throttles."""

from __future__ import annotations

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.quota.store import QuotaAlteration, QuotaOp
from kafkaproto.broker.testing.arguments import short_repr
from kafkaproto.broker.testing.base import Base
from kafkaproto.broker.testing.options import Default
from kafkaproto.broker.testing.tracebacks import is_hidden, without_frames_of_the_broker

__tracebackhide__ = is_hidden


class QuotaMethods(Base):
    """A base class of test clusters, with the methods for quotas."""

    def set_quota(
        self,
        *,
        client_id: str | Default | None = None,
        user: str | Default | None = None,
        ip: str | Default | None = None,
        **values: float | None,
    ) -> None:
        """Set client quotas: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate. None removes a quota.

        client_id, user: the client to which the quotas apply; `DEFAULT` stands for all client ids or users that have no quota of their own. ip: an IP
        address, which cannot be combined with a client id or user and has only the quota connection_creation_rate. Raises KafkaError INVALID_REQUEST
        (42) for an invalid key, value or entity, and then sets nothing. Raises TypeError for a name that is neither a str nor `DEFAULT`, and if no
        quota is given.
        """
        for kind, name in (("client_id", client_id), ("user", user), ("ip", ip)):
            if not isinstance(name, str | Default | None):
                raise TypeError(f"{kind} must be a str or DEFAULT (got {short_repr(name)}); for example {kind}='X'")
        if not values:
            raise TypeError("set_quota needs a quota; for example producer_byte_rate=1000, or None to remove it")
        components = [
            (kind, None if isinstance(name, Default) else name)
            for kind, name in (("user", user), ("client-id", client_id), ("ip", ip))
            if name is not None
        ]
        ops = [QuotaOp(key, 0.0 if value is None else value, remove=value is None) for key, value in values.items()]
        [result] = self._run(lambda: self.state.quota_store.alter([QuotaAlteration(components, ops)], False))
        if result.error_code:
            raise KafkaError(result.error_code, result.error_message)

    def force_throttle(
        self,
        throttle_ms: int,
        *,
        api: str | None = None,
        client_id: str | None = None,
        user: str | None = None,
        broker_id: int | None = None,
        times: int | None = None,
    ) -> ForcedThrottle:
        """Throttle requests regardless of their quotas: `force_throttle(700, api="Produce", client_id="X", times=3)`.

        Each matching response reports `throttle_ms`, a Fetch response has no data, and the connection is muted for that time (KIP-219). A
        cluster that emulates a Kafka release before 2.0 delays the response instead, and a Fetch response keeps its data. api, client_id, user,
        broker_id: None matches all. times: how many requests to throttle; None for all until `cancel_throttle`. Returns the rule, whose `hits`
        is the number of requests throttled so far. Raises ValueError for invalid arguments.
        """
        with without_frames_of_the_broker(ValueError):
            rule = ForcedThrottle(throttle_ms, api, client_id, user, broker_id, times)
        return self._run(lambda: self.state.forced_throttles.add(rule))

    def cancel_throttle(self, rule: ForcedThrottle) -> None:
        """Stop a forced throttle. Connections that are muted because of it stay muted until their throttle time is over.

        rule: the object that `force_throttle` returned.
        """
        if not isinstance(rule, ForcedThrottle):
            raise TypeError(f"rule must be the object that force_throttle returned (got {short_repr(rule)})")
        self._run(lambda: self.state.forced_throttles.cancel(rule))

    def set_request_cost(self, api: str, cost_ms: float) -> None:
        """Set the time that each request of an API is charged against the request quota, in ms: `set_request_cost("Metadata", 4)`.

        Needs clock="manual": with other clocks the broker measures its real handling time. Raises ValueError with such a clock, for an unknown API,
        and for a negative time.
        """
        if self.state.clock.is_wall:
            raise ValueError(
                f"set_request_cost({api!r}, {cost_ms!r}) needs a cluster with clock='manual'; with other clocks the broker measures handling time"
            )
        with without_frames_of_the_broker(ValueError):
            self._run(lambda: self.state.set_request_cost(api, cost_ms))
