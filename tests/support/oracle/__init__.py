"""Java programs on Kafka's own classes, and other codecs, that judge ours."""
