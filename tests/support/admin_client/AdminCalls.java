// Calls each method of Kafka's AdminClient that an unsecured cluster can answer, and prints what its results contain.
// Arguments: the addresses of three brokers, separated by commas. Each line of standard output is a JSON object {"call", "case", "result"}.
// With the single argument "methods" it prints the names of all methods instead.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

public final class AdminCalls {
    interface Call {
        Object run() throws Exception;
    }

    static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS);
    static final Set<String> NOT_CONTENT = Set.of("hashCode", "toString", "getClass", "notify", "notifyAll", "wait", "clone");
    static final String ERRORS_OF_BROKERS = "org.apache.kafka.common.errors.";
    static final int LIMIT_SECONDS = 40;
    static Admin admin;

    // ---- printing -------------------------------------------------------------------------------------------------------------

    static void print(String call, String name, Call body) throws Exception {
        Object result;
        try {
            result = content(body.run(), 0);
        } catch (Exception error) {
            result = failure(error);
        }
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("call", call);
        line.put("case", name);
        line.put("result", result);
        System.out.println(JSON.writeValueAsString(line));
    }

    static Map<String, Object> failure(Throwable error) {
        while (isWrapper(error) && error.getCause() != null) {
            error = error.getCause();
        }
        Map<String, Object> fields = new TreeMap<>();
        // The short name of an exception that may come from a broker, and the full name of any other, which is an error of this program or the client.
        Class<?> kind = error.getClass();
        fields.put("error", kind.getName().startsWith(ERRORS_OF_BROKERS) ? kind.getSimpleName() : kind.getName());
        fields.put("message", error.getMessage());
        return fields;
    }

    static boolean isWrapper(Throwable error) {
        return error instanceof ExecutionException || error instanceof InvocationTargetException || error.getClass() == KafkaException.class;
    }

    /** Returns maps, lists, texts and numbers for any result: waits for futures, and takes what the methods of an object without parameters return. */
    static Object content(Object value, int depth) throws Exception {
        if (value == null || value instanceof Boolean || value instanceof Number || value instanceof String) {
            return value;
        }
        if (depth > 12) {
            return value.toString();
        }
        if (value instanceof KafkaFuture<?> future) {
            try {
                return content(future.get(LIMIT_SECONDS, TimeUnit.SECONDS), depth + 1);
            } catch (Exception error) {
                return failure(error);
            }
        }
        if (value instanceof Throwable error) {
            return failure(error);
        }
        if (value instanceof Optional<?> optional) {
            return content(optional.orElse(null), depth + 1);
        }
        if (value instanceof OptionalInt || value instanceof OptionalLong || value instanceof Enum || value instanceof Uuid || value instanceof TopicPartition) {
            return value.toString();
        }
        if (value instanceof byte[] bytes) {
            return HexFormat.of().formatHex(bytes);
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, Object> sorted = new TreeMap<>();
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                sorted.put(String.valueOf(entry.getKey()), content(entry.getValue(), depth + 1));
            }
            return sorted;
        }
        if (value instanceof Collection<?> collection) {
            List<Object> items = new ArrayList<>();
            for (Object item : collection) {
                items.add(content(item, depth + 1));
            }
            if (value instanceof Set || !(value instanceof List)) {
                items.sort((a, b) -> String.valueOf(a).compareTo(String.valueOf(b)));
            }
            return items;
        }
        return fields(value, depth);
    }

    static Object fields(Object value, int depth) throws Exception {
        if (!value.getClass().getName().startsWith("org.apache.kafka")) {
            return value.toString();
        }
        Map<String, Object> fields = new TreeMap<>();
        for (Method method : value.getClass().getMethods()) {
            boolean content = method.getParameterCount() == 0 && method.getReturnType() != void.class
                && !Modifier.isStatic(method.getModifiers()) && !NOT_CONTENT.contains(method.getName());
            if (content) {
                method.setAccessible(true);
                try {
                    fields.put(method.getName(), content(method.invoke(value), depth + 1));
                } catch (InvocationTargetException error) {
                    fields.put(method.getName(), failure(error));
                }
            }
        }
        return fields;
    }

    // ---- arguments ------------------------------------------------------------------------------------------------------------

    static TopicPartition partition(String topic, int index) {
        return new TopicPartition(topic, index);
    }

    static ConfigResource resource(ConfigResource.Type type, String name) {
        return new ConfigResource(type, name);
    }

    static AlterConfigOp op(String name, String value, AlterConfigOp.OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    static ClientQuotaEntity client(String id) {
        Map<String, String> entries = new TreeMap<>();
        entries.put(ClientQuotaEntity.CLIENT_ID, id);
        return new ClientQuotaEntity(entries);
    }

    static Properties client(String bootstrap, Object... more) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        properties.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        properties.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        properties.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        for (int i = 0; i < more.length; i += 2) {
            properties.put(more[i], more[i + 1]);
        }
        return properties;
    }

    /** Calls a method that only one of the versions has, with its parameters and their types. */
    static Object reflected(String name, Object[] arguments, Class<?>... types) throws Exception {
        Method method = Admin.class.getMethod(name, types);
        return method.invoke(admin, arguments);
    }

    static boolean has(String name) {
        return Arrays.stream(Admin.class.getMethods()).anyMatch(method -> method.getName().equals(name));
    }

    // ---- calls ----------------------------------------------------------------------------------------------------------------

    static void topics() throws Exception {
        NewTopic given = new NewTopic("admin-a", Map.of(0, List.of(0, 1, 2), 1, List.of(1, 2, 0))).configs(Map.of("segment.bytes", "2000000"));
        print("createTopics", "create two topics", () -> {
            CreateTopicsResult made = admin.createTopics(List.of(given, new NewTopic("admin-b", Map.of(0, List.of(2)))));
            return Arrays.asList(made, made.config("admin-a"), made.numPartitions("admin-a"), made.replicationFactor("admin-a"));
        });
        print("createTopics", "create a topic that exists", () -> admin.createTopics(List.of(given)));
        print("createTopics", "validate a topic without creating it", () ->
            admin.createTopics(List.of(new NewTopic("admin-v", 2, (short) 2)), new CreateTopicsOptions().validateOnly(true)));
        print("createTopics", "ask for more replicas than there are brokers", () -> admin.createTopics(List.of(new NewTopic("admin-v", 1, (short) 9))));
        print("createTopics", "use an invalid topic name", () -> admin.createTopics(List.of(new NewTopic("admin%", 1, (short) 1))));
        print("createTopics", "assign replicas to partition 1 but not to partition 0", () -> admin.createTopics(List.of(new NewTopic("admin-v", Map.of(1, List.of(0))))));
        print("createTopics", "use an invalid value of a topic setting", () ->
            admin.createTopics(List.of(new NewTopic("admin-v", 1, (short) 1).configs(Map.of("retention.ms", "x")))));
        print("listTopics", "list all topics", () -> admin.listTopics());
        print("describeTopics", "describe a topic and a missing topic by name", () -> admin.describeTopics(List.of("admin-a", "admin-none")));
        print("describeTopics", "describe two topics in pages of one partition", () -> admin.describeTopics(List.of("admin-a", "admin-b"), new DescribeTopicsOptions().partitionSizeLimitPerResponse(1)));
        print("describeTopics", "include the authorized operations", () ->
            admin.describeTopics(List.of("admin-a"), new DescribeTopicsOptions().includeAuthorizedOperations(true)).topicNameValues());
        Uuid id = admin.describeTopics(List.of("admin-a")).topicNameValues().get("admin-a").get().topicId();
        print("describeTopics", "describe a topic by id", () -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))));
        print("describeTopics", "use an unknown topic id", () ->
            new ArrayList<>(admin.describeTopics(TopicCollection.ofTopicIds(List.of(new Uuid(7, 7)))).topicIdValues().values()));
        print("createPartitions", "add a partition", () -> admin.createPartitions(Map.of("admin-b", NewPartitions.increaseTo(2, List.of(List.of(0))))));
        print("createPartitions", "ask for fewer partitions than there are", () -> admin.createPartitions(Map.of("admin-a", NewPartitions.increaseTo(1))));
        print("createPartitions", "add partitions to a missing topic", () -> admin.createPartitions(Map.of("admin-none", NewPartitions.increaseTo(3))));
        print("createPartitions", "assign two replicas to the same broker", () -> admin.createPartitions(Map.of("admin-b", NewPartitions.increaseTo(3, List.of(List.of(0, 0))))));
    }

    static void configs() throws Exception {
        ConfigResource topic = resource(ConfigResource.Type.TOPIC, "admin-c");
        admin.createTopics(List.of(new NewTopic("admin-c", Map.of(0, List.of(1))))).all().get();
        Thread.sleep(1_500);  // brokers learn of topics some time after the controller
        ConfigResource broker = resource(ConfigResource.Type.BROKER, "1");
        ConfigResource all = resource(ConfigResource.Type.BROKER, "");
        print("describeConfigs", "describe a topic, with synonyms", () -> admin.describeConfigs(List.of(topic), new DescribeConfigsOptions().includeSynonyms(true)));
        print("describeConfigs", "describe a missing topic", () -> admin.describeConfigs(List.of(resource(ConfigResource.Type.TOPIC, "admin-none"))));
        print("incrementalAlterConfigs", "set a topic setting and append to a list", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(
            op("retention.ms", "5000", AlterConfigOp.OpType.SET), op("cleanup.policy", "compact", AlterConfigOp.OpType.APPEND)))));
        print("incrementalAlterConfigs", "set an unknown topic setting", () ->
            admin.incrementalAlterConfigs(Map.of(topic, List.of(op("nope", "1", AlterConfigOp.OpType.SET)))));
        print("incrementalAlterConfigs", "append to a setting that is no list", () ->
            admin.incrementalAlterConfigs(Map.of(topic, List.of(op("retention.ms", "1", AlterConfigOp.OpType.APPEND)))));
        print("incrementalAlterConfigs", "set a setting of one broker and one of all brokers", () -> admin.incrementalAlterConfigs(Map.of(
            broker, List.of(op("log.cleaner.threads", "2", AlterConfigOp.OpType.SET)),
            all, List.of(op("message.max.bytes", "500000", AlterConfigOp.OpType.SET)))));
        print("incrementalAlterConfigs", "set a read-only broker setting", () ->
            admin.incrementalAlterConfigs(Map.of(broker, List.of(op("broker.rack", "x", AlterConfigOp.OpType.SET)))));
        boolean groups = Arrays.stream(ConfigResource.Type.values()).anyMatch(type -> type.name().equals("GROUP"));
        if (groups) {
            print("incrementalAlterConfigs", "set a group setting", () -> admin.incrementalAlterConfigs(Map.of(
                resource(ConfigResource.Type.valueOf("GROUP"), "admin-g"),
                List.of(op("consumer.session.timeout.ms", "50000", AlterConfigOp.OpType.SET)))));
        }
        print("incrementalAlterConfigs", "create a subscription to client metrics", () -> admin.incrementalAlterConfigs(Map.of(
            resource(ConfigResource.Type.CLIENT_METRICS, "admin-m"), List.of(op("interval.ms", "1000", AlterConfigOp.OpType.SET)))));
        Thread.sleep(1_500);  // brokers apply changes some time after the controller
        print("describeConfigs", "describe a topic with changed settings", () -> changed(topic));
        print("describeConfigs", "describe a broker with a changed setting", () -> changed(broker));
        print("describeConfigs", "describe the settings of all brokers", () -> changed(all));
        if (groups) {
            print("describeConfigs", "describe a group", () ->
                admin.describeConfigs(List.of(resource(ConfigResource.Type.valueOf("GROUP"), "admin-g"))));
        }
        print("describeConfigs", "describe a subscription to client metrics", () -> admin.describeConfigs(List.of(resource(ConfigResource.Type.CLIENT_METRICS, "admin-m"))));
        print("listClientMetricsResources", "list the one subscription to client metrics", () -> admin.listClientMetricsResources());
        if (has("listConfigResources")) {
            Class<?> options = Class.forName("org.apache.kafka.clients.admin.ListConfigResourcesOptions");
            print("listConfigResources", "list resources of all types", () -> reflected("listConfigResources",
                new Object[] {Set.of(), options.getConstructor().newInstance()}, Set.class, options));
            print("listConfigResources", "list groups with settings", () -> reflected("listConfigResources",
                new Object[] {Set.of(ConfigResource.Type.valueOf("GROUP")), options.getConstructor().newInstance()}, Set.class, options));
        }
        if (has("alterConfigs")) {
            print("alterConfigs", "replace all settings of a topic", () -> reflected("alterConfigs",
                new Object[] {Map.of(topic, new Config(List.of(new ConfigEntry("retention.ms", "7000")))), new AlterConfigsOptions()},
                Map.class, AlterConfigsOptions.class));
            Thread.sleep(1_500);
            print("describeConfigs", "describe a topic after `alterConfigs`", () -> changed(topic));
        }
        print("incrementalAlterConfigs", "delete a setting of one broker", () -> admin.incrementalAlterConfigs(
            Map.of(broker, List.of(op("log.cleaner.threads", null, AlterConfigOp.OpType.DELETE)))));
        print("incrementalAlterConfigs", "delete a setting of all brokers", () -> admin.incrementalAlterConfigs(
            Map.of(all, List.of(op("message.max.bytes", null, AlterConfigOp.OpType.DELETE)))));
    }

    /** Returns the settings of a resource that are set on it, with their synonyms. */
    static Object changed(ConfigResource resource) throws Exception {
        Config config = admin.describeConfigs(List.of(resource), new DescribeConfigsOptions().includeSynonyms(true)).all().get().get(resource);
        List<ConfigEntry> set = new ArrayList<>();
        for (ConfigEntry entry : config.entries()) {
            if (entry.source().name().startsWith("DYNAMIC")) {
                set.add(entry);
            }
        }
        set.sort((a, b) -> a.name().compareTo(b.name()));
        return set;
    }

    static void records(String bootstrap) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(client(bootstrap, "enable.idempotence", "true"))) {
            for (int i = 0; i < 10; i++) {
                producer.send(new ProducerRecord<>("admin-a", 0, 1_000_000L + i, "k", "v" + i)).get();
            }
            print("describeProducers", "describe a partition with an idempotent producer", () -> admin.describeProducers(List.of(partition("admin-a", 0))));
        }
        print("describeProducers", "ask a broker that has no replica of the partition", () -> admin.describeProducers(
            List.of(partition("admin-c", 0)), new DescribeProducersOptions().brokerId(0)));
        print("listOffsets", "find the earliest offset", () -> offset(OffsetSpec.earliest()));
        print("listOffsets", "find the latest offset", () -> offset(OffsetSpec.latest()));
        print("listOffsets", "find the offset of the highest timestamp", () -> offset(OffsetSpec.maxTimestamp()));
        print("listOffsets", "find the offset of a timestamp", () -> offset(OffsetSpec.forTimestamp(1_000_004L)));
        print("listOffsets", "use a timestamp after the last record", () -> offset(OffsetSpec.forTimestamp(9_000_000_000_000L)));
        print("listOffsets", "find the earliest local offset", () -> offset(OffsetSpec.earliestLocal()));
        print("listOffsets", "find the latest offset in tiered storage", () -> offset(OffsetSpec.latestTiered()));
        if (Arrays.stream(OffsetSpec.class.getMethods()).anyMatch(method -> method.getName().equals("earliestPendingUpload"))) {
            print("listOffsets", "find the earliest offset that is not in tiered storage", () ->
                offset((OffsetSpec) OffsetSpec.class.getMethod("earliestPendingUpload").invoke(null)));
        }
        print("describeLogDirs", "describe the log directories of one broker", () -> {
            Map<String, LogDirDescription> folders = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
            List<Object> replicas = new ArrayList<>();
            for (LogDirDescription folder : folders.values()) {
                ReplicaInfo replica = folder.replicaInfos().get(partition("admin-a", 0));
                replicas.add(Arrays.asList(folder.error(), replica.size(), replica.offsetLag(), replica.isFuture()));
            }
            return replicas;
        });
        print("deleteRecords", "delete the records before offset 4", () -> admin.deleteRecords(Map.of(partition("admin-a", 0), RecordsToDelete.beforeOffset(4))));
        print("deleteRecords", "use an offset after the log end", () -> admin.deleteRecords(Map.of(partition("admin-a", 0), RecordsToDelete.beforeOffset(40))));
        print("listOffsets", "find the earliest offset after `deleteRecords`", () -> offset(OffsetSpec.earliest()));
    }

    static Object offset(OffsetSpec spec) {
        return admin.listOffsets(Map.of(partition("admin-a", 0), spec)).partitionResult(partition("admin-a", 0));
    }

    static void cluster() throws Exception {
        print("describeCluster", "describe the cluster", () -> admin.describeCluster());
        print("describeCluster", "include the authorized operations", () ->
            admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true)).authorizedOperations());
        TopicPartitionReplica replica = new TopicPartitionReplica("admin-a", 0, 1);
        print("describeReplicaLogDirs", "describe a replica and a missing replica", () ->
            admin.describeReplicaLogDirs(List.of(replica, new TopicPartitionReplica("admin-none", 0, 1))));
        print("alterReplicaLogDirs", "move a replica to an unknown directory", () -> admin.alterReplicaLogDirs(Map.of(replica, "/nowhere")));
        String folder = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).keySet().iterator().next();
        print("alterReplicaLogDirs", "move a replica to the directory that it is in", () -> admin.alterReplicaLogDirs(Map.of(replica, folder)));
        print("alterReplicaLogDirs", "move a replica that another broker has, and a missing replica", () -> admin.alterReplicaLogDirs(
            Map.of(new TopicPartitionReplica("admin-b", 0, 1), folder, new TopicPartitionReplica("admin-none", 0, 1), folder)));
        print("electLeaders", "elect the preferred leader, which leads already", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(partition("admin-a", 0))));
        print("electLeaders", "elect an unclean leader although there is a leader", () -> admin.electLeaders(ElectionType.UNCLEAN, Set.of(partition("admin-a", 0))));
        print("electLeaders", "elect a leader of a missing partition", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(partition("admin-none", 0))));
        print("alterPartitionReassignments", "move a replica", () -> admin.alterPartitionReassignments(
            Map.of(partition("admin-b", 0), Optional.of(new NewPartitionReassignment(List.of(2, 1))))));
        print("alterPartitionReassignments", "move a replica to an unknown broker", () -> admin.alterPartitionReassignments(
            Map.of(partition("admin-b", 0), Optional.of(new NewPartitionReassignment(List.of(2, 9))))));
        print("alterPartitionReassignments", "cancel a reassignment that does not exist", () -> admin.alterPartitionReassignments(Map.of(partition("admin-a", 0), Optional.empty())));
        print("alterPartitionReassignments", "move a replica of a missing topic", () -> admin.alterPartitionReassignments(
            Map.of(partition("admin-none", 0), Optional.of(new NewPartitionReassignment(List.of(2))))));
        Thread.sleep(1_500);
        print("listPartitionReassignments", "list reassignments when all are complete", () -> admin.listPartitionReassignments());
        print("describeTopics", "describe a topic after its replicas have moved", () -> admin.describeTopics(List.of("admin-b")).topicNameValues());
        print("describeFeatures", "describe all features", () -> admin.describeFeatures());
        print("updateFeatures", "validate a level of an unknown feature", () -> admin.updateFeatures(
            Map.of("nope", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions().validateOnly(true)));
        print("updateFeatures", "validate a level that is too high", () -> admin.updateFeatures(
            Map.of("metadata.version", new FeatureUpdate((short) 99, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions().validateOnly(true)));
        levels();
        print("describeMetadataQuorum", "describe the quorum", () -> admin.describeMetadataQuorum());
        print("unregisterBroker", "unregister an unknown broker", () -> admin.unregisterBroker(99));
        Set<RaftVoterEndpoint> endpoints = Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", 1));
        print("addRaftVoter", "add a voter to a static quorum", () -> admin.addRaftVoter(7, new Uuid(7, 7), endpoints));
        print("removeRaftVoter", "remove a voter from a static quorum", () -> admin.removeRaftVoter(7, new Uuid(7, 7)));
        print("clientInstanceId", "get the id from a broker that takes no telemetry", () -> admin.clientInstanceId(Duration.ofSeconds(10)));
        print("metrics", "get the client's own metrics", () -> admin.metrics().isEmpty());
    }

    /** Lowers a feature by one level that loses no metadata, and raises it again: `transaction.version` if the cluster has it, or `metadata.version`. */
    static void levels() throws Exception {
        Map<String, FinalizedVersionRange> finalized = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
        String feature = finalized.containsKey("transaction.version") ? "transaction.version" : "metadata.version";
        short highest = finalized.get(feature).maxVersionLevel();
        Map<String, FeatureUpdate> lower = Map.of(feature, new FeatureUpdate((short) (highest - 1), FeatureUpdate.UpgradeType.SAFE_DOWNGRADE));
        Map<String, FeatureUpdate> higher = Map.of(feature, new FeatureUpdate(highest, FeatureUpdate.UpgradeType.UPGRADE));
        print("updateFeatures", "validate a downgrade without doing it", () -> admin.updateFeatures(lower, new UpdateFeaturesOptions().validateOnly(true)));
        print("describeFeatures", "describe features after a downgrade was only validated", () -> admin.describeFeatures());
        print("updateFeatures", "downgrade a feature", () -> admin.updateFeatures(lower, new UpdateFeaturesOptions()));
        Thread.sleep(1_500);  // brokers apply changes some time after the controller
        print("describeFeatures", "describe features after a downgrade", () -> admin.describeFeatures());
        print("updateFeatures", "ask for the higher level as a downgrade", () -> admin.updateFeatures(
            Map.of(feature, new FeatureUpdate(highest, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)), new UpdateFeaturesOptions()));
        print("updateFeatures", "upgrade a feature", () -> admin.updateFeatures(higher, new UpdateFeaturesOptions()));
        Thread.sleep(1_500);
        print("describeFeatures", "describe features after an upgrade", () -> admin.describeFeatures());
    }

    static void quotas() throws Exception {
        ClientQuotaAlteration set = new ClientQuotaAlteration(client("admin-q"), List.of(
            new ClientQuotaAlteration.Op("producer_byte_rate", 5000.0), new ClientQuotaAlteration.Op("request_percentage", 50.0)));
        print("alterClientQuotas", "set two quotas of a client id", () -> admin.alterClientQuotas(List.of(set)));
        print("alterClientQuotas", "set a byte rate that is not a whole number", () -> admin.alterClientQuotas(
            List.of(new ClientQuotaAlteration(client("admin-q"), List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 5000.5))))));
        print("alterClientQuotas", "set an unknown quota", () -> admin.alterClientQuotas(
            List.of(new ClientQuotaAlteration(client("admin-q"), List.of(new ClientQuotaAlteration.Op("nope", 1.0))))));
        print("alterClientQuotas", "validate a quota of the default client id without setting it", () -> admin.alterClientQuotas(
            List.of(new ClientQuotaAlteration(client((String) null), List.of(new ClientQuotaAlteration.Op("consumer_byte_rate", 1.0)))),
            new AlterClientQuotasOptions().validateOnly(true)));
        Thread.sleep(1_500);
        print("describeClientQuotas", "describe all quotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()));
        print("describeClientQuotas", "describe the quotas of one client id", () -> admin.describeClientQuotas(
            ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity("client-id", "admin-q")))));
        print("alterClientQuotas", "remove two quotas of a client id", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(client("admin-q"), List.of(
            new ClientQuotaAlteration.Op("producer_byte_rate", null), new ClientQuotaAlteration.Op("request_percentage", null))))));
    }

    static void security() throws Exception {
        AclBinding binding = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL),
            new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));
        print("describeAcls", "describe all ACLs, without an authorizer", () -> admin.describeAcls(AclBindingFilter.ANY));
        print("createAcls", "create an ACL, without an authorizer", () -> admin.createAcls(List.of(binding)));
        print("deleteAcls", "delete all ACLs, without an authorizer", () -> new ArrayList<>(admin.deleteAcls(List.of(AclBindingFilter.ANY)).values().values()));
        print("createDelegationToken", "create a token on a listener without authentication", () -> admin.createDelegationToken());
        print("renewDelegationToken", "renew a token on a listener without authentication", () -> admin.renewDelegationToken(new byte[] {1}));
        print("expireDelegationToken", "expire a token on a listener without authentication", () -> admin.expireDelegationToken(new byte[] {1}));
        print("describeDelegationToken", "describe tokens on a listener without authentication", () -> admin.describeDelegationToken());
        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        print("describeUserScramCredentials", "describe credentials when there are none", () -> admin.describeUserScramCredentials().all());
        print("alterUserScramCredentials", "add a credential", () -> admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("admin-u", info, "secret"))));
        print("alterUserScramCredentials", "delete a credential that does not exist", () ->
            admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion("admin-none", ScramMechanism.SCRAM_SHA_512))));
        Thread.sleep(1_500);
        print("describeUserScramCredentials", "describe a user with credentials and a user without", () -> {
            DescribeUserScramCredentialsResult result = admin.describeUserScramCredentials(List.of("admin-u", "admin-none"));
            return Arrays.asList(result.users(), result.description("admin-u"), result.description("admin-none"));
        });
        print("alterUserScramCredentials", "delete a credential", () ->
            admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion("admin-u", ScramMechanism.SCRAM_SHA_256))));
    }

    static void groups(String bootstrap) throws Exception {
        List<String> names = List.of("admin-group", "admin-none");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(client(bootstrap, "group.id", "admin-group",
            "client.id", "admin-reader", "group.instance.id", "admin-member", "auto.offset.reset", "earliest", "enable.auto.commit", "false"))) {
            consumer.subscribe(List.of("admin-a"));
            int read = 0;
            while (read < 6) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    read += 1;
                }
            }
            consumer.position(partition("admin-a", 1));
            consumer.commitSync();
            print("describeConsumerGroups", "describe a group with a member and a missing group", () -> admin.describeConsumerGroups(names).describedGroups());
            print("describeConsumerGroups", "include the authorized operations", () -> admin.describeConsumerGroups(
                names, new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).describedGroups());
            print("listConsumerGroups", "list all consumer groups", () -> admin.listConsumerGroups());
            print("deleteConsumerGroups", "delete a group with a member", () -> admin.deleteConsumerGroups(List.of("admin-group")).deletedGroups());
            print("deleteConsumerGroupOffsets", "delete the offset of a topic to which the group is subscribed", () ->
                admin.deleteConsumerGroupOffsets("admin-group", Set.of(partition("admin-a", 0))).partitionResult(partition("admin-a", 0)));
            print("alterConsumerGroupOffsets", "change an offset of a group with a member", () -> admin.alterConsumerGroupOffsets(
                "admin-group", Map.of(partition("admin-a", 0), new OffsetAndMetadata(5))).partitionResult(partition("admin-a", 0)));
            if (has("listGroups")) {
                Class<?> options = Class.forName("org.apache.kafka.clients.admin.ListGroupsOptions");
                print("listGroups", "list all groups", () -> reflected("listGroups", new Object[] {options.getConstructor().newInstance()}, options));
            }
            if (has("describeClassicGroups")) {
                Class<?> options = Class.forName("org.apache.kafka.clients.admin.DescribeClassicGroupsOptions");
                print("describeClassicGroups", "describe a classic group with a member and a missing group", () -> {
                    Object result = reflected("describeClassicGroups", new Object[] {names, options.getConstructor().newInstance()}, Collection.class, options);
                    return result.getClass().getMethod("describedGroups").invoke(result);
                });
            }
            print("removeMembersFromConsumerGroup", "remove an unknown member", () -> {
                MemberToRemove member = new MemberToRemove("admin-nobody");
                return admin.removeMembersFromConsumerGroup("admin-group",
                    new RemoveMembersFromConsumerGroupOptions(List.of(member))).memberResult(member);
            });
            print("removeMembersFromConsumerGroup", "remove all members", () ->
                admin.removeMembersFromConsumerGroup("admin-group", new RemoveMembersFromConsumerGroupOptions()));
        }
        print("listConsumerGroupOffsets", "list the offsets of a group", () -> admin.listConsumerGroupOffsets("admin-group").partitionsToOffsetAndMetadata());
        print("listConsumerGroupOffsets", "list the offsets of a group and a missing group", () -> admin.listConsumerGroupOffsets(Map.of(
            "admin-group", new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(partition("admin-a", 0), partition("admin-a", 1))),
            "admin-none", new ListConsumerGroupOffsetsSpec())));
        print("alterConsumerGroupOffsets", "change an offset of an empty group", () -> admin.alterConsumerGroupOffsets("admin-group", Map.of(
            partition("admin-a", 1), new OffsetAndMetadata(3, Optional.of(0), "note"))));
        print("listConsumerGroupOffsets", "list the offsets after a change", () -> admin.listConsumerGroupOffsets("admin-group").partitionsToOffsetAndMetadata());
        print("deleteConsumerGroupOffsets", "delete an offset of an empty group", () ->
            admin.deleteConsumerGroupOffsets("admin-group", Set.of(partition("admin-a", 1))).partitionResult(partition("admin-a", 1)));
        print("describeConsumerGroups", "describe an empty group", () -> admin.describeConsumerGroups(List.of("admin-group")).describedGroups());
        print("deleteConsumerGroups", "delete an empty group and a missing group", () -> admin.deleteConsumerGroups(names).deletedGroups());
    }

    static void transactions(String bootstrap) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(client(bootstrap, "transactional.id", "admin-t"))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("admin-b", 0, "k", "open")).get();
            print("describeTransactions", "describe an open transaction and an unknown transactional id", () -> {
                DescribeTransactionsResult result = admin.describeTransactions(List.of("admin-t", "admin-none"));
                return Arrays.asList(result.description("admin-t"), result.description("admin-none"));
            });
            print("listTransactions", "list all transactions", () -> admin.listTransactions());
            print("listTransactions", "list the transactions in one state", () ->
                admin.listTransactions(new ListTransactionsOptions().filterStates(List.of(TransactionState.EMPTY))));
            print("listTransactions", "list the transactions that have been open for more than an hour", () ->
                admin.listTransactions(new ListTransactionsOptions().filterOnDuration(3_600_000L)));
            print("describeProducers", "describe a partition with an open transaction", () -> admin.describeProducers(List.of(partition("admin-b", 0))));
            print("listOffsets", "find the last stable offset during a transaction", () -> admin.listOffsets(Map.of(partition("admin-b", 0), OffsetSpec.latest()),
                new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).partitionResult(partition("admin-b", 0)));
            print("abortTransaction", "abort the transaction of an unknown producer", () ->
                admin.abortTransaction(new AbortTransactionSpec(partition("admin-b", 0), 12_345, (short) 0, 0)));
            // The call for an unknown producer has left this producer, too, and the order of producers is that of a hash table.
            ProducerState state = admin.describeProducers(List.of(partition("admin-b", 0))).partitionResult(partition("admin-b", 0)).get().activeProducers()
                .stream().filter(active -> active.currentTransactionStartOffset().isPresent()).findFirst().orElseThrow();
            print("abortTransaction", "abort an open transaction", () -> admin.abortTransaction(new AbortTransactionSpec(
                partition("admin-b", 0), state.producerId(), (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0))));
            print("listOffsets", "find the last stable offset after the transaction was aborted", () -> admin.listOffsets(Map.of(partition("admin-b", 0), OffsetSpec.latest()),
                new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).partitionResult(partition("admin-b", 0)));
            print("fenceProducers", "fence a producer and a new transactional id", () -> admin.fenceProducers(List.of("admin-t", "admin-f")));
            if (has("forceTerminateTransaction")) {
                Class<?> options = Class.forName("org.apache.kafka.clients.admin.TerminateTransactionOptions");
                print("forceTerminateTransaction", "terminate a transaction whose producer was fenced", () -> reflected("forceTerminateTransaction",
                    new Object[] {"admin-t", options.getConstructor().newInstance()}, String.class, options));
            }
            producer.close(Duration.ZERO);
        }
    }

    static void deletions() throws Exception {
        print("deleteTopics", "delete two topics and a missing topic by name", () -> admin.deleteTopics(List.of("admin-a", "admin-c", "admin-none")));
        Uuid id = admin.describeTopics(List.of("admin-b")).topicNameValues().get("admin-b").get().topicId();
        print("deleteTopics", "delete a topic by id", () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))));
        print("deleteTopics", "use an unknown topic id", () ->
            new ArrayList<>(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(new Uuid(7, 7)))).topicIdValues().values()));
    }

    /** Unregisters a running broker, which is then fenced until its restart. These calls come last. */
    static void registrations() throws Exception {
        admin.createTopics(List.of(new NewTopic("admin-r", Map.of(0, List.of(2, 0), 1, List.of(1, 2))), new NewTopic("admin-s", Map.of(0, List.of(2)))))
            .all().get();
        Thread.sleep(1_500);
        print("unregisterBroker", "unregister a running broker", () -> admin.unregisterBroker(2));
        Thread.sleep(4_000);  // the broker sends heartbeats to the controller every two seconds
        print("describeTopics", "describe topics after a broker was unregistered", () -> admin.describeTopics(List.of("admin-r", "admin-s")).topicNameValues());
        print("describeCluster", "describe the cluster after a broker was unregistered", () -> admin.describeCluster());
        print("createTopics", "place a replica on an unregistered broker", () -> admin.createTopics(List.of(new NewTopic("admin-u", Map.of(0, List.of(2))))));
        print("unregisterBroker", "unregister an unregistered broker", () -> admin.unregisterBroker(2));
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("methods")) {
            Set<String> names = new java.util.TreeSet<>();
            for (Method method : Admin.class.getMethods()) {
                if (!Modifier.isStatic(method.getModifiers())) {
                    names.add(method.getName());
                }
            }
            System.out.println(JSON.writeValueAsString(names));
            return;
        }
        admin = Admin.create(client(arguments[0], "default.api.timeout.ms", "30000", "request.timeout.ms", "10000", "enable.metrics.push", "true"));
        topics();
        configs();
        records(arguments[0]);
        cluster();
        quotas();
        security();
        groups(arguments[0]);
        transactions(arguments[0]);
        deletions();
        registrations();
        admin.close(Duration.ofSeconds(5));
    }
}
