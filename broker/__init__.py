"""A Kafka broker to test against: exact byte limits, quotas, throttling and closest-replica fetching."""

if __name__ == "broker":
    from kafkaproto.checkout import redirect

    redirect(__name__)
