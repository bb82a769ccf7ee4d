// The tasks with Kafka's Java client; see tasks.py.

import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Tasks {
    static final ObjectMapper JSON = new ObjectMapper();
    static final int PATIENCE_MS = 12_000;
    static final int BROKERS = 3;
    static final String GIVEN = "given";
    static final TopicPartition PARTITION = new TopicPartition(GIVEN, 0);
    static final List<String> VALUES = IntStream.range(0, 10).mapToObj(Integer::toString).toList();
    static final int RESUME_AT = 4;
    static final int OFFSET_IN_TRANSACTION = 7;

    interface Task {
        void run() throws Exception;
    }

    // Thrown if the client neither does the task nor reports an error.
    static class Waits extends RuntimeException {
    }

    static String bootstrap;
    static String name;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        name = arguments[1];
        Map<String, Task> tasks = new LinkedHashMap<>();
        tasks.put("connect", () -> {
            try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
                expect(consumer.partitionsFor(GIVEN).size() == 1, "no partition");
            }
        });
        tasks.put("produce", () -> send(Map.of("acks", "all", "enable.idempotence", false), name + "-produce"));
        tasks.put("idempotent produce", () -> send(Map.of("enable.idempotence", true), name + "-idempotent"));
        tasks.put("consume", Tasks::consume);
        tasks.put("group", () -> group("classic"));
        tasks.put("new group", () -> group("consumer"));
        tasks.put("describe cluster", () -> {
            try (Admin admin = admin()) {
                expect(admin.describeCluster().nodes().get().size() == BROKERS, "missing brokers");
            }
        });
        tasks.put("create topic", () -> {
            try (Admin admin = admin()) {
                admin.createTopics(List.of(new NewTopic(name + "-created", 2, (short) 1))).all().get();
            }
        });
        tasks.put("add partitions", () -> {
            try (Admin admin = admin()) {
                admin.createPartitions(Map.of(name + "-partitions", NewPartitions.increaseTo(2))).all().get();
            }
        });
        tasks.put("describe configs", () -> {
            try (Admin admin = admin()) {
                ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, GIVEN);
                expect(admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms") != null, "no retention.ms");
            }
        });
        tasks.put("list topics", () -> {
            try (Admin admin = admin()) {
                expect(admin.listTopics().names().get().contains(GIVEN), "no topic " + GIVEN);
            }
        });
        tasks.put("transaction", () -> transaction(name + "-transaction", false));
        tasks.put("offsets in a transaction", () -> transaction(name + "-offsets", true));
        List<Thread> threads = new ArrayList<>();
        tasks.forEach((task, action) -> threads.add(new Thread(() -> attempt(task, action))));
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        Runtime.getRuntime().halt(0); // clients of failed tasks would wait for their timeouts
    }

    static void attempt(String task, Task action) {
        String outcome = "works";
        try {
            action.run();
        } catch (Throwable thrown) {
            boolean isWrapper = thrown instanceof ExecutionException || thrown instanceof CompletionException;
            outcome = text(isWrapper ? thrown.getCause() : thrown);
        }
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("task", task);
        line.put("outcome", outcome);
        line.put("note", null);
        print(line);
    }

    static synchronized void print(Map<String, Object> line) {
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    static String text(Throwable error) {
        if (error instanceof Waits) {
            return "waits";
        }
        String own = error.getClass().getSimpleName() + ": " + error.getMessage();
        return error.getCause() == null ? own : own + " <- " + text(error.getCause());
    }

    static void expect(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }

    static Map<String, Object> settings(Map<String, Object> more) {
        Map<String, Object> settings = new LinkedHashMap<>(Map.of("bootstrap.servers", bootstrap, "client.id", name));
        settings.putAll(more);
        return settings;
    }

    static Admin admin() {
        return Admin.create(settings(Map.of("default.api.timeout.ms", PATIENCE_MS, "request.timeout.ms", PATIENCE_MS / 2)));
    }

    static KafkaProducer<String, String> producer(Map<String, Object> more) {
        Map<String, Object> settings = settings(Map.of(
            "max.block.ms", PATIENCE_MS, "delivery.timeout.ms", PATIENCE_MS, "request.timeout.ms", PATIENCE_MS / 2, "linger.ms", 0));
        settings.putAll(more);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(Map<String, Object> more) {
        Map<String, Object> settings = settings(Map.of(
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "default.api.timeout.ms", PATIENCE_MS, "request.timeout.ms", PATIENCE_MS / 2));
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static void send(Map<String, Object> settings, String topic) throws Exception {
        try (KafkaProducer<String, String> producer = producer(settings)) {
            producer.send(new ProducerRecord<>(topic, 0, null, "value")).get(2 * PATIENCE_MS, TimeUnit.MILLISECONDS);
        }
    }

    static void read(KafkaConsumer<String, String> consumer, List<String> expected) {
        List<String> values = new ArrayList<>();
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
        while (values.size() < expected.size() && System.nanoTime() < deadline) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                values.add(record.value());
            }
        }
        if (values.isEmpty()) {
            throw new Waits();
        }
        expect(values.equals(expected), "read " + values);
    }

    static void consume() {
        try (KafkaConsumer<String, String> consumer = consumer(Map.of())) {
            consumer.assign(List.of(PARTITION));
            read(consumer, VALUES);
        }
    }

    static void group(String protocol) {
        Map<String, Object> settings = Map.of("group.id", name + "-" + protocol, "group.protocol", protocol);
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of(GIVEN));
            read(consumer, VALUES);
            consumer.commitSync(Map.of(PARTITION, new OffsetAndMetadata(RESUME_AT)));
        }
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of(GIVEN));
            read(consumer, VALUES.subList(RESUME_AT, VALUES.size()));
        }
    }

    static void transaction(String topic, boolean withOffsets) throws Exception {
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", topic, "transaction.timeout.ms", PATIENCE_MS))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "value")).get(2 * PATIENCE_MS, TimeUnit.MILLISECONDS);
            if (withOffsets) {
                try (KafkaConsumer<String, String> member = consumer(Map.of("group.id", topic))) {
                    producer.sendOffsetsToTransaction(
                        Map.of(PARTITION, new OffsetAndMetadata(OFFSET_IN_TRANSACTION)), member.groupMetadata());
                }
            }
            producer.commitTransaction();
        }
        try (KafkaConsumer<String, String> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            read(consumer, List.of("value"));
        }
    }
}
