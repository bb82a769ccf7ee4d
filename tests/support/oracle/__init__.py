"""Java programs on Kafka's own classes, and other codecs, as references for this one."""
