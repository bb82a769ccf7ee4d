"""PySpark jobs over Kafka traffic. They reach brokers only over the network. They import the codec and the broker's quota arithmetic."""

if __name__ == "pipeline":
    from kafkaproto.checkout import redirect

    redirect(__name__)
