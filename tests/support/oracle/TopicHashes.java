// A line in, a line out, as Oracle.java: the hashes of topics that Kafka 4.1 and later store with a group (KIP-1101).
//
//   topics <json>
//     [{name, id, racks: [[rack of a replica] of a partition]}] -> the hash of a group that subscribes to them, as a signed number
//
// Topic ids are Kafka's base64. A line that fails is answered with "! " and the exception.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;

public class TopicHashes {
    record Topic(String name, Uuid id, List<List<String>> racks) implements CoordinatorMetadataImage.TopicMetadata {
        public int partitionCount() {
            return racks.size();
        }

        public List<String> partitionRacks(int partition) {
            return new ArrayList<>(racks.get(partition));
        }
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                System.out.println(hash(json.readTree(line.split(" ", 2)[1])));
            } catch (Throwable error) {
                System.out.println("! " + error);
            }
            System.out.flush();
        }
    }

    static long hash(JsonNode topics) {
        Map<String, Long> hashes = new HashMap<>();
        for (JsonNode node : topics) {
            List<List<String>> racks = new ArrayList<>();
            for (JsonNode partition : node.get("racks")) {
                List<String> names = new ArrayList<>();
                partition.forEach(rack -> names.add(rack.asText()));
                racks.add(names);
            }
            Topic topic = new Topic(node.get("name").asText(), Uuid.fromString(node.get("id").asText()), racks);
            hashes.put(topic.name(), Utils.computeTopicHash(topic.name(), image(topic)));
        }
        return Utils.computeGroupHash(hashes);
    }

    static CoordinatorMetadataImage image(Topic topic) {
        Class<?> kind = CoordinatorMetadataImage.class;
        return (CoordinatorMetadataImage) Proxy.newProxyInstance(
            kind.getClassLoader(), new Class<?>[] {kind}, (image, method, arguments) -> Optional.of(topic));
    }
}
