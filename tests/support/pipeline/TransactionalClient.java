// The transactions of the Java client for checking rules; see transactional_clients.py.
// usage: TransactionalClient BOOTSTRAP TOPIC GROUP PARTITIONS COMMITTED ABORTED

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class TransactionalClient {
    static final Duration TURN = Duration.ofMillis(500);
    static String bootstrap, topic, group;
    static int partitions;

    public static void main(String[] given) throws Exception {
        bootstrap = given[0];
        topic = given[1];
        group = given[2];
        partitions = Integer.parseInt(given[3]);
        int committed = Integer.parseInt(given[4]), aborted = Integer.parseInt(given[5]);
        var first = started();
        end(first, true);
        end(first, false);
        begin(first);
        var second = started();
        end(second, true);
        end(second, true);
        try {
            first.commitTransaction();
            throw new IllegalStateException("the fenced producer committed");
        } catch (KafkaException fenced) {
            first.close(Duration.ZERO);
        }
        second.close();
        read("read_uncommitted", committed + aborted);
        read("read_committed", committed);
        System.exit(0);
    }

    static KafkaProducer<byte[], byte[]> started() {
        Properties settings = settings();
        settings.put("transactional.id", group);
        var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        producer.initTransactions();
        return producer;
    }

    static void begin(KafkaProducer<byte[], byte[]> producer) throws Exception {
        producer.beginTransaction();
        for (int index = 0; index < partitions; index++)
            producer.send(new ProducerRecord<byte[], byte[]>(topic, index, null, new byte[1])).get();
    }

    static void end(KafkaProducer<byte[], byte[]> producer, boolean commit) throws Exception {
        begin(producer);
        producer.sendOffsetsToTransaction(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(1)), new ConsumerGroupMetadata(group));
        if (commit) producer.commitTransaction();
        else producer.abortTransaction();
    }

    static void read(String isolation, int expected) {
        Properties settings = settings();
        settings.put("isolation.level", isolation);
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> all = new ArrayList<>();
            for (int index = 0; index < partitions; index++) all.add(new TopicPartition(topic, index));
            consumer.assign(all);
            consumer.seekToBeginning(all);
            int seen = 0;
            while (seen < expected) seen += consumer.poll(TURN).count();
            if (seen != expected || !consumer.poll(TURN).isEmpty()) throw new IllegalStateException(isolation + " read " + seen);
        }
    }

    static Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", group);
        return settings;
    }
}
