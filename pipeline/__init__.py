"""PySpark jobs over Kafka traffic. They reach brokers only over the network. They import the codec, and the broker's arithmetic of quotas."""

if __name__ == "pipeline":
    from kafkaproto.checkout import redirect

    redirect(__name__)
