"""Client quotas: who may use how much, what was used, and for how long to throttle. Throttling itself is the connection's.

`windows` the arithmetic, `entities` and `store` the configured values, `precedence` which of them holds for a client,
`client_quotas` what one broker measures. What a request costs: `requests.charges`. No wire messages, no clock.
"""
