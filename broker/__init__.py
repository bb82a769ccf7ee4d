"""A Kafka broker to test against: exact byte limits, quotas, throttles and closest-replica reads. `ls` this folder: it is the glossary."""

if __name__ == "broker":
    from kafkaproto.checkout import redirect

    redirect(__name__)
