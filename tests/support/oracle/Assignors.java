// A line in, a line out, as Oracle.java: the assignors of the group coordinator.
//
//   uniform <json>, range <json>
//     {homogeneous, topics: {id: partitions}, members: {id: {instance, topics: [id], target: {id: [partition]}}}}
//     -> {member: {topic id: [partition]}}, in the order of Kafka's tables
//
// Topic ids are Kafka's base64. A line that fails is answered with "! " and the exception.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class Assignors {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", 2);
            try {
                System.out.println(assign(words[0], JSON.readTree(words[1])));
            } catch (Throwable error) {
                System.out.println("! " + error);
            }
            System.out.flush();
        }
    }

    static String assign(String name, JsonNode group) throws Exception {
        Map<Uuid, Integer> counts = new HashMap<>();
        group.get("topics").fields().forEachRemaining(e -> counts.put(Uuid.fromString(e.getKey()), e.getValue().asInt()));
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        group.get("members").fields().forEachRemaining(entry -> {
            JsonNode member = entry.getValue();
            Set<Uuid> topics = new HashSet<>();
            member.get("topics").forEach(id -> topics.add(Uuid.fromString(id.asText())));
            Map<Uuid, Set<Integer>> target = new HashMap<>();
            member.get("target").fields().forEachRemaining(e -> {
                Uuid id = Uuid.fromString(e.getKey());
                List<Integer> indexes = new ArrayList<>();
                e.getValue().forEach(index -> {
                    indexes.add(index.asInt());
                    owners.computeIfAbsent(id, any -> new HashMap<>()).put(index.asInt(), entry.getKey());
                });
                target.put(id, new HashSet<>(indexes)); // as Assignment.fromRecord makes it
            });
            JsonNode instance = member.get("instance");
            Optional<String> instanceId = instance.isNull() ? Optional.empty() : Optional.of(instance.asText());
            members.put(
                entry.getKey(),
                new MemberSubscriptionAndAssignmentImpl(Optional.empty(), instanceId, topics, new Assignment(target)));
        });
        SubscriptionType type =
            group.get("homogeneous").asBoolean() ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        SubscribedTopicDescriber topics = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid id) {
                return counts.getOrDefault(id, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid id, int partition) {
                return Set.of();
            }
        };
        ConsumerGroupPartitionAssignor assignor = name.equals("range") ? new RangeAssignor() : new UniformAssignor();
        Map<String, Map<String, List<Integer>>> result = new TreeMap<>();
        assignor.assign(new GroupSpecImpl(members, type, owners), topics).members().forEach((id, assignment) -> {
            Map<String, List<Integer>> byTopic = result.computeIfAbsent(id, any -> new LinkedHashMap<>());
            assignment.partitions().forEach((topic, partitions) -> byTopic.put(topic.toString(), new ArrayList<>(partitions)));
        });
        return JSON.writeValueAsString(result);
    }
}
