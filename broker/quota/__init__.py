"""Client quotas: configured values, measured rates, and throttle times. The connection enforces a throttle.

`windows` has the arithmetic, `entities` and `store` hold the configured values, `precedence` selects the value that applies to a client,
`client_quotas` measures what the clients of one broker use. `requests.charges` decides what a request costs. This package does not depend on
wire messages or on a clock.
"""
