"""PySpark over Kafka traffic. Speaks to brokers over the network only; may import kafkaproto and the quota arithmetic."""

if __name__ == "pipeline":
    from kafkaproto.checkout import redirect

    redirect(__name__)
