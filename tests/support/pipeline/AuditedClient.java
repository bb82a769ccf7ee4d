// The traffic of the Java client for checking rules; see real_clients.py.
// usage: AuditedClient BOOTSTRAP TOPIC PARTITIONS RECORDS VALUE_BYTES RACK PARTITION_FETCH_BYTES
// An idempotent producer and one with acks=0; a consumer in a rack that reads everything, waits at the end, and requests an invalid offset.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class AuditedClient {
    static final long NOT_THERE = 1_000_000_000L;
    static final Duration TURN = Duration.ofMillis(200);
    static final int WAITS = 3;

    public static void main(String[] given) {
        String topic = given[1];
        int partitions = Integer.parseInt(given[2]), records = Integer.parseInt(given[3]), valueBytes = Integer.parseInt(given[4]);
        for (String acks : List.of("all", "0")) {
            Properties settings = settings(given[0]);
            settings.put("acks", acks);
            settings.put("enable.idempotence", Boolean.toString(acks.equals("all")));
            settings.put("batch.size", Integer.toString(4 * valueBytes));
            try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
                for (int number = 0; number < records; number++)
                    producer.send(new ProducerRecord<byte[], byte[]>(topic, number % partitions, null, new byte[valueBytes]));
            }
        }
        Properties settings = settings(given[0]);
        settings.put("client.rack", given[5]);
        settings.put("max.partition.fetch.bytes", given[6]);
        settings.put("fetch.max.wait.ms", "100");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> all = new ArrayList<>();
            for (int index = 0; index < partitions; index++) all.add(new TopicPartition(topic, index));
            consumer.assign(all);
            consumer.seekToBeginning(all);
            read(consumer, all);
            for (int turn = 0; turn < WAITS; turn++) consumer.poll(TURN);
            for (TopicPartition one : all) consumer.seek(one, NOT_THERE);
            read(consumer, all);
        }
    }

    static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", "java");
        return settings;
    }

    static void read(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> all) {
        var ends = consumer.endOffsets(all);
        boolean behind = true;
        while (behind) {
            consumer.poll(TURN);
            behind = false;
            for (TopicPartition one : all) {
                long position = consumer.position(one);
                behind |= position < ends.get(one) || position == NOT_THERE;
            }
        }
    }
}
