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
        print("createTopics", "a topic", () -> {
            CreateTopicsResult made = admin.createTopics(List.of(given, new NewTopic("admin-b", Map.of(0, List.of(2)))));
            return Arrays.asList(made, made.config("admin-a"), made.numPartitions("admin-a"), made.replicationFactor("admin-a"));
        });
        print("createTopics", "an existing topic", () -> admin.createTopics(List.of(given)));
        print("createTopics", "only validated", () ->
            admin.createTopics(List.of(new NewTopic("admin-v", 2, (short) 2)), new CreateTopicsOptions().validateOnly(true)));
        print("createTopics", "too many replicas", () -> admin.createTopics(List.of(new NewTopic("admin-v", 1, (short) 9))));
        print("createTopics", "a bad name", () -> admin.createTopics(List.of(new NewTopic("admin%", 1, (short) 1))));
        print("createTopics", "a bad assignment", () -> admin.createTopics(List.of(new NewTopic("admin-v", Map.of(1, List.of(0))))));
        print("createTopics", "a bad setting", () ->
            admin.createTopics(List.of(new NewTopic("admin-v", 1, (short) 1).configs(Map.of("retention.ms", "x")))));
        print("listTopics", "all", () -> admin.listTopics());
        print("describeTopics", "by name", () -> admin.describeTopics(List.of("admin-a", "admin-none")));
        print("describeTopics", "with paging", () -> admin.describeTopics(List.of("admin-a", "admin-b"), new DescribeTopicsOptions().partitionSizeLimitPerResponse(1)));
        print("describeTopics", "with authorized operations", () ->
            admin.describeTopics(List.of("admin-a"), new DescribeTopicsOptions().includeAuthorizedOperations(true)).topicNameValues());
        Uuid id = admin.describeTopics(List.of("admin-a")).topicNameValues().get("admin-a").get().topicId();
        print("describeTopics", "by id", () -> admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))));
        print("describeTopics", "by an unknown id", () ->
            new ArrayList<>(admin.describeTopics(TopicCollection.ofTopicIds(List.of(new Uuid(7, 7)))).topicIdValues().values()));
        print("createPartitions", "one more", () -> admin.createPartitions(Map.of("admin-b", NewPartitions.increaseTo(2, List.of(List.of(0))))));
        print("createPartitions", "fewer", () -> admin.createPartitions(Map.of("admin-a", NewPartitions.increaseTo(1))));
        print("createPartitions", "of a missing topic", () -> admin.createPartitions(Map.of("admin-none", NewPartitions.increaseTo(3))));
        print("createPartitions", "a bad assignment", () -> admin.createPartitions(Map.of("admin-b", NewPartitions.increaseTo(3, List.of(List.of(0, 0))))));
    }

    static void configs() throws Exception {
        ConfigResource topic = resource(ConfigResource.Type.TOPIC, "admin-c");
        admin.createTopics(List.of(new NewTopic("admin-c", Map.of(0, List.of(1))))).all().get();
        Thread.sleep(1_500);  // brokers learn of topics some time after the controller
        ConfigResource broker = resource(ConfigResource.Type.BROKER, "1");
        ConfigResource all = resource(ConfigResource.Type.BROKER, "");
        print("describeConfigs", "a topic", () -> admin.describeConfigs(List.of(topic), new DescribeConfigsOptions().includeSynonyms(true)));
        print("describeConfigs", "a missing topic", () -> admin.describeConfigs(List.of(resource(ConfigResource.Type.TOPIC, "admin-none"))));
        print("incrementalAlterConfigs", "a topic", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(
            op("retention.ms", "5000", AlterConfigOp.OpType.SET), op("cleanup.policy", "compact", AlterConfigOp.OpType.APPEND)))));
        print("incrementalAlterConfigs", "an unknown setting", () ->
            admin.incrementalAlterConfigs(Map.of(topic, List.of(op("nope", "1", AlterConfigOp.OpType.SET)))));
        print("incrementalAlterConfigs", "append to a number", () ->
            admin.incrementalAlterConfigs(Map.of(topic, List.of(op("retention.ms", "1", AlterConfigOp.OpType.APPEND)))));
        print("incrementalAlterConfigs", "a broker and all brokers", () -> admin.incrementalAlterConfigs(Map.of(
            broker, List.of(op("log.cleaner.threads", "2", AlterConfigOp.OpType.SET)),
            all, List.of(op("message.max.bytes", "500000", AlterConfigOp.OpType.SET)))));
        print("incrementalAlterConfigs", "a read-only setting", () ->
            admin.incrementalAlterConfigs(Map.of(broker, List.of(op("broker.rack", "x", AlterConfigOp.OpType.SET)))));
        boolean groups = Arrays.stream(ConfigResource.Type.values()).anyMatch(type -> type.name().equals("GROUP"));
        if (groups) {
            print("incrementalAlterConfigs", "a group", () -> admin.incrementalAlterConfigs(Map.of(
                resource(ConfigResource.Type.valueOf("GROUP"), "admin-g"),
                List.of(op("consumer.session.timeout.ms", "50000", AlterConfigOp.OpType.SET)))));
        }
        print("incrementalAlterConfigs", "client metrics", () -> admin.incrementalAlterConfigs(Map.of(
            resource(ConfigResource.Type.CLIENT_METRICS, "admin-m"), List.of(op("interval.ms", "1000", AlterConfigOp.OpType.SET)))));
        Thread.sleep(1_500);  // brokers apply changes some time after the controller
        print("describeConfigs", "a changed topic", () -> changed(topic));
        print("describeConfigs", "a changed broker", () -> changed(broker));
        print("describeConfigs", "all brokers", () -> changed(all));
        if (groups) {
            print("describeConfigs", "a group", () ->
                admin.describeConfigs(List.of(resource(ConfigResource.Type.valueOf("GROUP"), "admin-g"))));
        }
        print("describeConfigs", "client metrics", () -> admin.describeConfigs(List.of(resource(ConfigResource.Type.CLIENT_METRICS, "admin-m"))));
        print("listClientMetricsResources", "one", () -> admin.listClientMetricsResources());
        if (has("listConfigResources")) {
            Class<?> options = Class.forName("org.apache.kafka.clients.admin.ListConfigResourcesOptions");
            print("listConfigResources", "all types", () -> reflected("listConfigResources",
                new Object[] {Set.of(), options.getConstructor().newInstance()}, Set.class, options));
            print("listConfigResources", "groups", () -> reflected("listConfigResources",
                new Object[] {Set.of(ConfigResource.Type.valueOf("GROUP")), options.getConstructor().newInstance()}, Set.class, options));
        }
        if (has("alterConfigs")) {
            print("alterConfigs", "a topic", () -> reflected("alterConfigs",
                new Object[] {Map.of(topic, new Config(List.of(new ConfigEntry("retention.ms", "7000")))), new AlterConfigsOptions()},
                Map.class, AlterConfigsOptions.class));
            Thread.sleep(1_500);
            print("describeConfigs", "a replaced topic", () -> changed(topic));
        }
        print("incrementalAlterConfigs", "delete a setting of a broker", () -> admin.incrementalAlterConfigs(
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
            print("describeProducers", "an idempotent producer", () -> admin.describeProducers(List.of(partition("admin-a", 0))));
        }
        print("describeProducers", "a partition of another broker", () -> admin.describeProducers(
            List.of(partition("admin-c", 0)), new DescribeProducersOptions().brokerId(0)));
        print("listOffsets", "earliest", () -> offset(OffsetSpec.earliest()));
        print("listOffsets", "latest", () -> offset(OffsetSpec.latest()));
        print("listOffsets", "highest timestamp", () -> offset(OffsetSpec.maxTimestamp()));
        print("listOffsets", "a timestamp", () -> offset(OffsetSpec.forTimestamp(1_000_004L)));
        print("listOffsets", "a later timestamp", () -> offset(OffsetSpec.forTimestamp(9_000_000_000_000L)));
        print("listOffsets", "earliest in local logs", () -> offset(OffsetSpec.earliestLocal()));
        print("listOffsets", "latest in remote logs", () -> offset(OffsetSpec.latestTiered()));
        if (Arrays.stream(OffsetSpec.class.getMethods()).anyMatch(method -> method.getName().equals("earliestPendingUpload"))) {
            print("listOffsets", "earliest that is not uploaded", () ->
                offset((OffsetSpec) OffsetSpec.class.getMethod("earliestPendingUpload").invoke(null)));
        }
        print("describeLogDirs", "one broker", () -> {
            Map<String, LogDirDescription> folders = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1);
            List<Object> replicas = new ArrayList<>();
            for (LogDirDescription folder : folders.values()) {
                ReplicaInfo replica = folder.replicaInfos().get(partition("admin-a", 0));
                replicas.add(Arrays.asList(folder.error(), replica.size(), replica.offsetLag(), replica.isFuture()));
            }
            return replicas;
        });
        print("deleteRecords", "before 4", () -> admin.deleteRecords(Map.of(partition("admin-a", 0), RecordsToDelete.beforeOffset(4))));
        print("deleteRecords", "after the end", () -> admin.deleteRecords(Map.of(partition("admin-a", 0), RecordsToDelete.beforeOffset(40))));
        print("listOffsets", "after deletion", () -> offset(OffsetSpec.earliest()));
    }

    static Object offset(OffsetSpec spec) {
        return admin.listOffsets(Map.of(partition("admin-a", 0), spec)).partitionResult(partition("admin-a", 0));
    }

    static void cluster() throws Exception {
        print("describeCluster", "all", () -> admin.describeCluster());
        print("describeCluster", "with authorized operations", () ->
            admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true)).authorizedOperations());
        TopicPartitionReplica replica = new TopicPartitionReplica("admin-a", 0, 1);
        print("describeReplicaLogDirs", "a replica and a missing one", () ->
            admin.describeReplicaLogDirs(List.of(replica, new TopicPartitionReplica("admin-none", 0, 1))));
        print("alterReplicaLogDirs", "to an unknown folder", () -> admin.alterReplicaLogDirs(Map.of(replica, "/nowhere")));
        String folder = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).keySet().iterator().next();
        print("alterReplicaLogDirs", "to its present folder", () -> admin.alterReplicaLogDirs(Map.of(replica, folder)));
        print("alterReplicaLogDirs", "a replica of another broker and a missing one", () -> admin.alterReplicaLogDirs(
            Map.of(new TopicPartitionReplica("admin-b", 0, 1), folder, new TopicPartitionReplica("admin-none", 0, 1), folder)));
        print("electLeaders", "preferred, not needed", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(partition("admin-a", 0))));
        print("electLeaders", "unclean, not needed", () -> admin.electLeaders(ElectionType.UNCLEAN, Set.of(partition("admin-a", 0))));
        print("electLeaders", "a missing partition", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(partition("admin-none", 0))));
        print("alterPartitionReassignments", "move a replica", () -> admin.alterPartitionReassignments(
            Map.of(partition("admin-b", 0), Optional.of(new NewPartitionReassignment(List.of(2, 1))))));
        print("alterPartitionReassignments", "an unknown broker", () -> admin.alterPartitionReassignments(
            Map.of(partition("admin-b", 0), Optional.of(new NewPartitionReassignment(List.of(2, 9))))));
        print("alterPartitionReassignments", "cancel none", () -> admin.alterPartitionReassignments(Map.of(partition("admin-a", 0), Optional.empty())));
        print("alterPartitionReassignments", "a missing topic", () -> admin.alterPartitionReassignments(
            Map.of(partition("admin-none", 0), Optional.of(new NewPartitionReassignment(List.of(2))))));
        Thread.sleep(1_500);
        print("listPartitionReassignments", "when all are done", () -> admin.listPartitionReassignments());
        print("describeTopics", "after the move", () -> admin.describeTopics(List.of("admin-b")).topicNameValues());
        print("describeFeatures", "all", () -> admin.describeFeatures());
        print("updateFeatures", "an unknown feature", () -> admin.updateFeatures(
            Map.of("nope", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions().validateOnly(true)));
        print("updateFeatures", "too high a level", () -> admin.updateFeatures(
            Map.of("metadata.version", new FeatureUpdate((short) 99, FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions().validateOnly(true)));
        levels();
        print("describeMetadataQuorum", "all", () -> admin.describeMetadataQuorum());
        print("unregisterBroker", "an unknown broker", () -> admin.unregisterBroker(99));
        Set<RaftVoterEndpoint> endpoints = Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", 1));
        print("addRaftVoter", "a static quorum", () -> admin.addRaftVoter(7, new Uuid(7, 7), endpoints));
        print("removeRaftVoter", "a static quorum", () -> admin.removeRaftVoter(7, new Uuid(7, 7)));
        print("clientInstanceId", "without telemetry", () -> admin.clientInstanceId(Duration.ofSeconds(10)));
        print("metrics", "the client's own", () -> admin.metrics().isEmpty());
    }

    /** Lowers a feature by one level that loses no metadata, and raises it again: `transaction.version` if the cluster has it, or `metadata.version`. */
    static void levels() throws Exception {
        Map<String, FinalizedVersionRange> finalized = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
        String feature = finalized.containsKey("transaction.version") ? "transaction.version" : "metadata.version";
        short highest = finalized.get(feature).maxVersionLevel();
        Map<String, FeatureUpdate> lower = Map.of(feature, new FeatureUpdate((short) (highest - 1), FeatureUpdate.UpgradeType.SAFE_DOWNGRADE));
        Map<String, FeatureUpdate> higher = Map.of(feature, new FeatureUpdate(highest, FeatureUpdate.UpgradeType.UPGRADE));
        print("updateFeatures", "a downgrade, only validated", () -> admin.updateFeatures(lower, new UpdateFeaturesOptions().validateOnly(true)));
        print("describeFeatures", "after a validation", () -> admin.describeFeatures());
        print("updateFeatures", "a downgrade", () -> admin.updateFeatures(lower, new UpdateFeaturesOptions()));
        Thread.sleep(1_500);  // brokers apply changes some time after the controller
        print("describeFeatures", "after a downgrade", () -> admin.describeFeatures());
        print("updateFeatures", "an upgrade as downgrade", () -> admin.updateFeatures(
            Map.of(feature, new FeatureUpdate(highest, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)), new UpdateFeaturesOptions()));
        print("updateFeatures", "an upgrade", () -> admin.updateFeatures(higher, new UpdateFeaturesOptions()));
        Thread.sleep(1_500);
        print("describeFeatures", "after an upgrade", () -> admin.describeFeatures());
    }

    static void quotas() throws Exception {
        ClientQuotaAlteration set = new ClientQuotaAlteration(client("admin-q"), List.of(
            new ClientQuotaAlteration.Op("producer_byte_rate", 5000.0), new ClientQuotaAlteration.Op("request_percentage", 50.0)));
        print("alterClientQuotas", "set", () -> admin.alterClientQuotas(List.of(set)));
        print("alterClientQuotas", "a fraction of a byte", () -> admin.alterClientQuotas(
            List.of(new ClientQuotaAlteration(client("admin-q"), List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 5000.5))))));
        print("alterClientQuotas", "an unknown quota", () -> admin.alterClientQuotas(
            List.of(new ClientQuotaAlteration(client("admin-q"), List.of(new ClientQuotaAlteration.Op("nope", 1.0))))));
        print("alterClientQuotas", "the default, only validated", () -> admin.alterClientQuotas(
            List.of(new ClientQuotaAlteration(client((String) null), List.of(new ClientQuotaAlteration.Op("consumer_byte_rate", 1.0)))),
            new AlterClientQuotasOptions().validateOnly(true)));
        Thread.sleep(1_500);
        print("describeClientQuotas", "all", () -> admin.describeClientQuotas(ClientQuotaFilter.all()));
        print("describeClientQuotas", "one client", () -> admin.describeClientQuotas(
            ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity("client-id", "admin-q")))));
        print("alterClientQuotas", "remove", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(client("admin-q"), List.of(
            new ClientQuotaAlteration.Op("producer_byte_rate", null), new ClientQuotaAlteration.Op("request_percentage", null))))));
    }

    static void security() throws Exception {
        AclBinding binding = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "t", PatternType.LITERAL),
            new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));
        print("describeAcls", "any", () -> admin.describeAcls(AclBindingFilter.ANY));
        print("createAcls", "one", () -> admin.createAcls(List.of(binding)));
        print("deleteAcls", "any", () -> new ArrayList<>(admin.deleteAcls(List.of(AclBindingFilter.ANY)).values().values()));
        print("createDelegationToken", "unsecured", () -> admin.createDelegationToken());
        print("renewDelegationToken", "unsecured", () -> admin.renewDelegationToken(new byte[] {1}));
        print("expireDelegationToken", "unsecured", () -> admin.expireDelegationToken(new byte[] {1}));
        print("describeDelegationToken", "unsecured", () -> admin.describeDelegationToken());
        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
        print("describeUserScramCredentials", "none", () -> admin.describeUserScramCredentials().all());
        print("alterUserScramCredentials", "one", () -> admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("admin-u", info, "secret"))));
        print("alterUserScramCredentials", "delete a missing one", () ->
            admin.alterUserScramCredentials(List.of(new UserScramCredentialDeletion("admin-none", ScramMechanism.SCRAM_SHA_512))));
        Thread.sleep(1_500);
        print("describeUserScramCredentials", "one and a missing one", () -> {
            DescribeUserScramCredentialsResult result = admin.describeUserScramCredentials(List.of("admin-u", "admin-none"));
            return Arrays.asList(result.users(), result.description("admin-u"), result.description("admin-none"));
        });
        print("alterUserScramCredentials", "delete", () ->
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
            print("describeConsumerGroups", "a group with a member", () -> admin.describeConsumerGroups(names).describedGroups());
            print("describeConsumerGroups", "with authorized operations", () -> admin.describeConsumerGroups(
                names, new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).describedGroups());
            print("listConsumerGroups", "all", () -> admin.listConsumerGroups());
            print("deleteConsumerGroups", "a group with a member", () -> admin.deleteConsumerGroups(List.of("admin-group")).deletedGroups());
            print("deleteConsumerGroupOffsets", "a subscribed topic", () ->
                admin.deleteConsumerGroupOffsets("admin-group", Set.of(partition("admin-a", 0))).partitionResult(partition("admin-a", 0)));
            print("alterConsumerGroupOffsets", "of a group with a member", () -> admin.alterConsumerGroupOffsets(
                "admin-group", Map.of(partition("admin-a", 0), new OffsetAndMetadata(5))).partitionResult(partition("admin-a", 0)));
            if (has("listGroups")) {
                Class<?> options = Class.forName("org.apache.kafka.clients.admin.ListGroupsOptions");
                print("listGroups", "all", () -> reflected("listGroups", new Object[] {options.getConstructor().newInstance()}, options));
            }
            if (has("describeClassicGroups")) {
                Class<?> options = Class.forName("org.apache.kafka.clients.admin.DescribeClassicGroupsOptions");
                print("describeClassicGroups", "a group with a member", () -> {
                    Object result = reflected("describeClassicGroups", new Object[] {names, options.getConstructor().newInstance()}, Collection.class, options);
                    return result.getClass().getMethod("describedGroups").invoke(result);
                });
            }
            print("removeMembersFromConsumerGroup", "an unknown member", () -> {
                MemberToRemove member = new MemberToRemove("admin-nobody");
                return admin.removeMembersFromConsumerGroup("admin-group",
                    new RemoveMembersFromConsumerGroupOptions(List.of(member))).memberResult(member);
            });
            print("removeMembersFromConsumerGroup", "all members", () ->
                admin.removeMembersFromConsumerGroup("admin-group", new RemoveMembersFromConsumerGroupOptions()));
        }
        print("listConsumerGroupOffsets", "of a group", () -> admin.listConsumerGroupOffsets("admin-group").partitionsToOffsetAndMetadata());
        print("listConsumerGroupOffsets", "of two groups", () -> admin.listConsumerGroupOffsets(Map.of(
            "admin-group", new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(partition("admin-a", 0), partition("admin-a", 1))),
            "admin-none", new ListConsumerGroupOffsetsSpec())));
        print("alterConsumerGroupOffsets", "of an empty group", () -> admin.alterConsumerGroupOffsets("admin-group", Map.of(
            partition("admin-a", 1), new OffsetAndMetadata(3, Optional.of(0), "note"))));
        print("listConsumerGroupOffsets", "after a change", () -> admin.listConsumerGroupOffsets("admin-group").partitionsToOffsetAndMetadata());
        print("deleteConsumerGroupOffsets", "of an empty group", () ->
            admin.deleteConsumerGroupOffsets("admin-group", Set.of(partition("admin-a", 1))).partitionResult(partition("admin-a", 1)));
        print("describeConsumerGroups", "an empty group", () -> admin.describeConsumerGroups(List.of("admin-group")).describedGroups());
        print("deleteConsumerGroups", "an empty group and a missing one", () -> admin.deleteConsumerGroups(names).deletedGroups());
    }

    static void transactions(String bootstrap) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(client(bootstrap, "transactional.id", "admin-t"))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("admin-b", 0, "k", "open")).get();
            print("describeTransactions", "an open one and a missing one", () -> {
                DescribeTransactionsResult result = admin.describeTransactions(List.of("admin-t", "admin-none"));
                return Arrays.asList(result.description("admin-t"), result.description("admin-none"));
            });
            print("listTransactions", "all", () -> admin.listTransactions());
            print("listTransactions", "of a state", () ->
                admin.listTransactions(new ListTransactionsOptions().filterStates(List.of(TransactionState.EMPTY))));
            print("listTransactions", "by duration", () ->
                admin.listTransactions(new ListTransactionsOptions().filterOnDuration(3_600_000L)));
            print("describeProducers", "an open transaction", () -> admin.describeProducers(List.of(partition("admin-b", 0))));
            print("listOffsets", "last stable offset", () -> admin.listOffsets(Map.of(partition("admin-b", 0), OffsetSpec.latest()),
                new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).partitionResult(partition("admin-b", 0)));
            print("abortTransaction", "with a wrong epoch", () ->
                admin.abortTransaction(new AbortTransactionSpec(partition("admin-b", 0), 12_345, (short) 0, 0)));
            // The call with a wrong epoch has left a producer, too, and the order of producers is that of a hash table.
            ProducerState state = admin.describeProducers(List.of(partition("admin-b", 0))).partitionResult(partition("admin-b", 0)).get().activeProducers()
                .stream().filter(active -> active.currentTransactionStartOffset().isPresent()).findFirst().orElseThrow();
            print("abortTransaction", "an open one", () -> admin.abortTransaction(new AbortTransactionSpec(
                partition("admin-b", 0), state.producerId(), (short) state.producerEpoch(), state.coordinatorEpoch().orElse(0))));
            print("listOffsets", "last stable offset after the abort", () -> admin.listOffsets(Map.of(partition("admin-b", 0), OffsetSpec.latest()),
                new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).partitionResult(partition("admin-b", 0)));
            print("fenceProducers", "a producer and a new id", () -> admin.fenceProducers(List.of("admin-t", "admin-f")));
            if (has("forceTerminateTransaction")) {
                Class<?> options = Class.forName("org.apache.kafka.clients.admin.TerminateTransactionOptions");
                print("forceTerminateTransaction", "after fencing", () -> reflected("forceTerminateTransaction",
                    new Object[] {"admin-t", options.getConstructor().newInstance()}, String.class, options));
            }
            producer.close(Duration.ZERO);
        }
    }

    static void deletions() throws Exception {
        print("deleteTopics", "by name", () -> admin.deleteTopics(List.of("admin-a", "admin-c", "admin-none")));
        Uuid id = admin.describeTopics(List.of("admin-b")).topicNameValues().get("admin-b").get().topicId();
        print("deleteTopics", "by id", () -> admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))));
        print("deleteTopics", "by an unknown id", () ->
            new ArrayList<>(admin.deleteTopics(TopicCollection.ofTopicIds(List.of(new Uuid(7, 7)))).topicIdValues().values()));
    }

    /** Unregisters a running broker, which is then fenced until its restart. These calls come last. */
    static void registrations() throws Exception {
        admin.createTopics(List.of(new NewTopic("admin-r", Map.of(0, List.of(2, 0), 1, List.of(1, 2))), new NewTopic("admin-s", Map.of(0, List.of(2)))))
            .all().get();
        Thread.sleep(1_500);
        print("unregisterBroker", "a running broker", () -> admin.unregisterBroker(2));
        Thread.sleep(4_000);  // the broker sends heartbeats to the controller every two seconds
        print("describeTopics", "after a broker was unregistered", () -> admin.describeTopics(List.of("admin-r", "admin-s")).topicNameValues());
        print("describeCluster", "after a broker was unregistered", () -> admin.describeCluster());
        print("createTopics", "on an unregistered broker", () -> admin.createTopics(List.of(new NewTopic("admin-u", Map.of(0, List.of(2))))));
        print("unregisterBroker", "an unregistered broker", () -> admin.unregisterBroker(2));
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
