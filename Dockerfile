# A Kafka broker to test against: docker build -t kafkaproto . && docker run --rm -p 9092:9092 kafkaproto
# It takes the variables KAFKA_... of the apache/kafka image; what stands behind the image's name are options of `kafkaproto broker`.
FROM python:3.11-slim

WORKDIR /opt/kafkaproto
COPY pyproject.toml README.md LICENSE ./
COPY kafkaproto kafkaproto
COPY broker broker
COPY pipeline pipeline
RUN pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore .

# Any user may write here, so that `docker run --user` works.
RUN mkdir -p -m 777 /var/lib/kafka/data
RUN mkdir -p /mnt/shared/config
VOLUME ["/var/lib/kafka/data"]

USER 1000:1000
WORKDIR /
EXPOSE 9092
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s --retries=3 CMD ["kafkaproto", "health", "--container", "/mnt/shared/config"]
ENTRYPOINT ["kafkaproto", "broker", "--container", "/mnt/shared/config"]
