// A producer or a consumer that runs as fast as it may, one record per request; see paced.py.
// usage: PacedClient produce|consume BOOTSTRAP CLIENT_ID TOPIC VALUE_BYTES SECONDS
// Prints "record NUMBER SECONDS" for each record, SECONDS since the first, and at the end "metric NAME VALUE".

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class PacedClient {
    static final int DIGITS = 10;
    static long zeroNanos = -1;
    static double seconds;
    static final StringBuilder said = new StringBuilder();

    public static void main(String[] given) throws Exception {
        String topic = given[3];
        int valueBytes = Integer.parseInt(given[4]);
        seconds = Double.parseDouble(given[5]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given[1]);
        settings.put("client.id", given[2]);
        if (given[0].equals("produce")) produce(settings, topic, valueBytes);
        else consume(settings, topic, valueBytes);
        System.out.print(said);
    }

    static void produce(Properties settings, String topic, int valueBytes) throws Exception {
        settings.put("linger.ms", "0");
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.partitionsFor(topic);
            for (int number = 0; lasts(); number++) {
                byte[] value = Arrays.copyOf(String.format("%0" + DIGITS + "d", number).getBytes(StandardCharsets.US_ASCII), valueBytes);
                producer.send(new ProducerRecord<byte[], byte[]>(topic, 0, null, value)).get();
                took(number);
            }
            tell(producer.metrics());
        }
    }

    static void consume(Properties settings, String topic, int valueBytes) {
        settings.put("max.partition.fetch.bytes", Integer.toString(valueBytes / 2));
        settings.put("enable.auto.commit", "false");
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            while (lasts())
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100)))
                    took(Integer.parseInt(new String(record.value(), 0, DIGITS, StandardCharsets.US_ASCII)));
            tell(consumer.metrics());
        }
    }

    static boolean lasts() {
        return zeroNanos < 0 || System.nanoTime() - zeroNanos < seconds * 1e9;
    }

    static void took(int number) {
        long now = System.nanoTime();
        if (zeroNanos < 0) zeroNanos = now;
        said.append(String.format("record %d %.4f%n", number, (now - zeroNanos) / 1e9));
    }

    static void tell(Map<MetricName, ? extends Metric> metrics) {
        metrics.forEach((name, metric) -> {
            if (name.name().contains("throttle")) said.append("metric " + name.name() + " " + metric.metricValue() + "\n");
        });
    }
}
