// A producer that leaves enable.metrics.push at its default and sends one record every 100 ms for some seconds.
// Arguments: bootstrap servers, topic, seconds. Prints the client instance id that the broker gave to the producer.

import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public final class PushingClient {
    public static void main(String[] arguments) throws InterruptedException {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "client.id", "java-producer",
            "batch.size", 0, "max.in.flight.requests.per.connection", 1);
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings, text, text)) {
            for (int i = 0; i < 10 * Integer.parseInt(arguments[2]); i++) {
                producer.send(new ProducerRecord<>(arguments[1], "value " + i));
                Thread.sleep(100);
            }
            System.out.println(producer.clientInstanceId(Duration.ofSeconds(10)));
            // Only while the producer waits for other responses, it sends its terminating push.
            for (int i = 0; i < 200; i++) {
                producer.send(new ProducerRecord<>(arguments[1], "last " + i));
            }
        }
    }
}
