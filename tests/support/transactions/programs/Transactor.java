// Transactions with Kafka's Java client. Speaks the line protocol of lines.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Transactor {
    static final ObjectMapper JSON = new ObjectMapper();
    static final long PATIENCE_SECONDS = 15;

    KafkaProducer<String, String> producer;
    KafkaConsumer<String, String> consumer;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Transactor transactor = new Transactor();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode response = JSON.createObjectNode().putNull("error");
            try {
                transactor.act(JSON.readTree(line), response);
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                response.put("error", cause.getClass().getSimpleName()).put("message", String.valueOf(cause.getMessage()));
            }
            System.out.println(response);
        }
        System.exit(0);
    }

    void act(JsonNode command, ObjectNode response) throws Exception {
        switch (command.get("command").asText()) {
            case "init" -> init(command);
            case "begin" -> producer.beginTransaction();
            case "send" -> producer
                .send(new ProducerRecord<>(command.get("topic").asText(), command.get("partition").asInt(), null, command.get("value").asText()))
                .get(PATIENCE_SECONDS, TimeUnit.SECONDS);
            case "offsets" -> producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(command.get("topic").asText(), 0), new OffsetAndMetadata(command.get("offset").asLong())),
                consumer.groupMetadata());
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "read" -> read(command, response.putArray("values"));
            default -> throw new IllegalArgumentException(command.toString());
        }
    }

    void init(JsonNode command) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", command.get("bootstrap").asText());
        if (!command.get("group").isNull()) {
            settings.put("group.id", command.get("group").asText());
            consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
            settings.remove("group.id");
        }
        settings.put("client.id", command.get("transactional_id").asText());
        settings.put("transactional.id", command.get("transactional_id").asText());
        settings.put("transaction.timeout.ms", command.get("timeout_ms").asInt());
        settings.put("linger.ms", 0);
        settings.put("max.block.ms", PATIENCE_SECONDS * 1000);
        producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
    }

    static void read(JsonNode command, ArrayNode values) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", command.get("bootstrap").asText());
        settings.put("isolation.level", command.get("isolation").asText());
        settings.put("fetch.max.wait.ms", 100);
        try (KafkaConsumer<String, String> reader = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            for (int partition = 0; partition < command.get("partitions").asInt(); partition++) {
                TopicPartition place = new TopicPartition(command.get("topic").asText(), partition);
                reader.assign(List.of(place));
                reader.seek(place, 0);
                readOne(reader, command, values.addArray());
            }
        }
    }

    static void readOne(KafkaConsumer<String, String> reader, JsonNode command, ArrayNode values) {
        boolean isComplete = false;
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (System.nanoTime() < deadline) {
            for (ConsumerRecord<String, String> record : reader.poll(Duration.ofMillis(100))) {
                values.add(record.value());
                if (record.value().equals(command.get("last").asText())) {
                    isComplete = true;
                    deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(command.get("further_ms").asLong());
                }
            }
        }
        if (!isComplete) {
            throw new IllegalStateException("the partition ends after " + values);
        }
    }
}
