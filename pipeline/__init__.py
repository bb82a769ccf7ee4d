"""PySpark jobs over Kafka traffic. They connect to brokers only over the network; they share the codec and the quota arithmetic with the broker."""

if __name__ == "pipeline":
    from kafkaproto.checkout import redirect

    redirect(__name__)
