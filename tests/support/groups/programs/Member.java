// A group member with Kafka's Java client. Speaks the line protocol of lines.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Member implements ConsumerRebalanceListener {
    static final ObjectMapper JSON = new ObjectMapper();
    static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);
    static final int MOST_RECORDS = 50;
    static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    final String name;
    final Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
    final LinkedBlockingQueue<JsonNode> commands = new LinkedBlockingQueue<>();

    Member(String name) {
        this.name = name;
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        OUT.write("{\"event\": \"ready\"}\n".getBytes(StandardCharsets.UTF_8));
        JsonNode start = JSON.readTree(in.readLine());
        Member member = new Member(start.get("member").asText());
        Thread reader = new Thread(() -> member.read(in));
        reader.setDaemon(true);
        reader.start();
        member.run(start);
        System.exit(0);
    }

    void read(BufferedReader in) {
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                commands.add(JSON.readTree(line));
            }
            commands.add(JSON.readTree("{\"command\": \"stop\"}"));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    static Properties settings(JsonNode start) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", start.get("bootstrap").asText());
        settings.put("client.id", start.get("member").asText());
        settings.put("group.id", start.get("group").asText());
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", MOST_RECORDS);
        settings.put("metadata.max.age.ms", "2000");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("group.protocol", start.get("protocol").asText());
        if (start.get("protocol").asText().equals("classic")) {
            settings.put("partition.assignment.strategy", ASSIGNORS.get(start.get("assignor").asText()));
            settings.put("session.timeout.ms", start.get("session_timeout_ms").asText());
            settings.put("heartbeat.interval.ms", "300");
        } else {
            settings.put("group.remote.assignor", start.get("assignor").asText());
        }
        if (!start.get("instance_id").isNull()) {
            settings.put("group.instance.id", start.get("instance_id").asText());
        }
        return settings;
    }

    void run(JsonNode start) throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(start))) {
            consumer.subscribe(topics(start), this);
            while (true) {
                report(consumer.poll(Duration.ofMillis(100)));
                JsonNode command = commands.poll();
                if (command == null) {
                    continue;
                }
                switch (command.get("command").asText()) {
                    case "subscribe" -> consumer.subscribe(topics(command), this);
                    case "commit" -> commit(consumer);
                    default -> {
                        consumer.close();
                        emit(event("stopped"));
                        return;
                    }
                }
            }
        }
    }

    static List<String> topics(JsonNode command) {
        List<String> topics = new ArrayList<>();
        command.get("topics").forEach(topic -> topics.add(topic.asText()));
        return topics;
    }

    void report(Iterable<ConsumerRecord<byte[], byte[]>> records) throws Exception {
        ObjectNode event = event("records");
        ArrayNode list = event.putArray("records");
        for (ConsumerRecord<byte[], byte[]> record : records) {
            list.addArray().add(record.topic()).add(record.partition()).add(record.offset());
            positions.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        if (!list.isEmpty()) {
            emit(event);
        }
    }

    void commit(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        ObjectNode event = event("committed");
        ArrayNode list = event.putArray("offsets");
        positions.forEach((partition, offset) ->
            list.addArray().add(partition.topic()).add(partition.partition()).add(offset.offset()));
        try {
            consumer.commitSync(new HashMap<>(positions), Duration.ofSeconds(5));
            emit(event);
        } catch (KafkaException error) {
            emit(event("commit failed").put("error", error.toString()));
        }
    }

    ObjectNode event(String event) {
        return JSON.createObjectNode().put("member", name).put("event", event);
    }

    static void emit(ObjectNode event) {
        try {
            OUT.write((event + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    void emit(String event, Collection<TopicPartition> partitions) {
        ObjectNode made = event(event);
        ArrayNode list = made.putArray("partitions");
        partitions.forEach(partition -> list.addArray().add(partition.topic()).add(partition.partition()));
        emit(made);
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        emit("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        partitions.forEach(positions::remove);
        emit("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        partitions.forEach(positions::remove);
        emit("lost", partitions);
    }
}
