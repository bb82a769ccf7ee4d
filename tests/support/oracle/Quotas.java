// Answers one line per line, like Oracle.java: the arithmetic and the managers of Kafka's quotas, at given times.
//
//   rate <json>      {samples, window_ms, cap_ms, steps: [[time, value, bound], ...]}: Sensor with a Rate
//                    -> [[rate, window, throttle, capped throttle], ...]
//   bucket <json>    {samples, window_ms, steps: [[time, value, bound, strict], ...]}: Sensor with a TokenBucket
//                    -> [[tokens, throttle or -1 for none], ...]
//   client <json>    {samples, window_seconds, type, steps: [...]}: a ClientQuotaManager -> throttle times of the records
//                    ["quota", user, client, value], ["record", time, user, client, value], ["unrecord", ...]
//   mutation <json>  like client, for a ControllerMutationQuotaManager: ["record", time, user, client, value, strict]
//                    -> [[refused, throttle], ...]
//   connection <json> {samples, window_seconds, steps: [["quota", address, value], ["connect", time, address]]}
//                    -> for each connect: milliseconds for which the address is throttled
//   entities <json>  {steps: [["alter", AlterClientQuotas request], ["describe", DescribeClientQuotas request]]} in Kafka's JSON
//                    -> for each alter [[entity, error], ...], for each describe [error, [[entity, values], ...]]
//   replication <json> {samples, window_seconds, steps: [["limit", bound], ["record", time, bytes], ["look", time]]}
//                    -> for each look of a ReplicationQuotaManager: [exceeded, rate]
//   names <json>     {user, client}: the metrics of all managers after a request of the client -> [[name, group, tags], ...]
//
// In the entity of a quota, null is no user or client and "" the default. The answer to a line that fails is "! " and the exception.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import kafka.network.ConnectionQuotas;
import kafka.server.ClientQuotaManager;
import kafka.server.ClientRequestQuotaManager;
import kafka.server.ControllerMutationQuota;
import kafka.server.ControllerMutationQuotaManager;
import kafka.server.KafkaConfig;
import kafka.server.QuotaType;
import kafka.server.ReplicationQuotaManager;
import kafka.utils.QuotaUtils;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.message.AlterClientQuotasRequestData;
import org.apache.kafka.common.message.AlterClientQuotasRequestDataJsonConverter;
import org.apache.kafka.common.message.DescribeClientQuotasRequestData;
import org.apache.kafka.common.message.DescribeClientQuotasRequestDataJsonConverter;
import org.apache.kafka.common.message.DescribeClientQuotasResponseData;
import org.apache.kafka.common.metadata.ClientQuotaRecord;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.requests.AlterClientQuotasRequest;
import org.apache.kafka.common.requests.ApiError;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Sanitizer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.controller.ClientQuotaControlManager;
import org.apache.kafka.image.ClientQuotasDelta;
import org.apache.kafka.image.ClientQuotasImage;
import org.apache.kafka.network.ConnectionThrottledException;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.server.config.ReplicationQuotaManagerConfig;
import scala.Option;

public class Quotas {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                String[] words = line.split(" ", 2);
                answer = JSON.writeValueAsString(answer(words[0], JSON.readTree(words[1])));
            } catch (Throwable e) {
                answer = "! " + e;
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
        System.exit(0); // managers have threads of their own
    }

    static JsonNode answer(String question, JsonNode asked) throws Exception {
        switch (question) {
            case "rate":
                return rate(asked);
            case "bucket":
                return bucket(asked);
            case "client":
                return client(asked);
            case "mutation":
                return mutation(asked);
            case "connection":
                return connection(asked);
            case "entities":
                return entities(asked);
            case "replication":
                return replication(asked);
            case "names":
                return names(asked);
        }
        throw new IllegalArgumentException(question);
    }

    // a clock that a test sets
    static class ManualTime implements Time {
        long now;

        public long milliseconds() {
            return now;
        }

        public long nanoseconds() {
            return now * 1_000_000;
        }

        public void sleep(long ms) {
            now += ms;
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }
    }

    static MetricConfig config(JsonNode asked, double bound) {
        return new MetricConfig().samples(asked.get("samples").intValue())
            .timeWindow(asked.get("window_ms").longValue(), TimeUnit.MILLISECONDS).quota(new Quota(bound, true));
    }

    static Metrics metrics(Time time) {
        return new Metrics(new MetricConfig(), Collections.emptyList(), time, true);
    }

    static JsonNode rate(JsonNode asked) {
        ManualTime time = new ManualTime();
        ArrayNode answers = JSON.createArrayNode();
        try (Metrics metrics = metrics(time)) {
            Sensor sensor = metrics.sensor("one");
            MetricName name = metrics.metricName("rate", "one");
            Rate rate = new Rate();
            sensor.add(name, rate, config(asked, 1));
            KafkaMetric metric = metrics.metric(name);
            for (JsonNode step : asked.get("steps")) {
                time.now = step.get(0).longValue();
                MetricConfig config = config(asked, step.get(2).doubleValue());
                metric.config(config);
                long throttle = 0;
                long capped = 0;
                try {
                    sensor.record(step.get(1).doubleValue(), time.now);
                } catch (QuotaViolationException e) {
                    throttle = QuotaUtils.throttleTime(e, time.now);
                    capped = QuotaUtils.boundedThrottleTime(e, asked.get("cap_ms").longValue(), time.now);
                }
                answers.addArray().add(rate.measure(config, time.now)).add(rate.windowSize(config, time.now))
                    .add(throttle).add(capped);
            }
        }
        return answers;
    }

    static JsonNode bucket(JsonNode asked) {
        ManualTime time = new ManualTime();
        ArrayNode answers = JSON.createArrayNode();
        try (Metrics metrics = metrics(time)) {
            Sensor sensor = metrics.sensor("one");
            MetricName name = metrics.metricName("tokens", "one");
            TokenBucket bucket = new TokenBucket();
            sensor.add(name, bucket, config(asked, 1));
            KafkaMetric metric = metrics.metric(name);
            for (JsonNode step : asked.get("steps")) {
                time.now = step.get(0).longValue();
                MetricConfig config = config(asked, step.get(2).doubleValue());
                metric.config(config);
                long throttle = -1;
                try {
                    if (step.get(3).booleanValue())
                        sensor.checkQuotas(time.now);
                    sensor.record(step.get(1).doubleValue(), time.now, !step.get(3).booleanValue());
                } catch (QuotaViolationException e) {
                    throttle = ControllerMutationQuotaManager.throttleTimeMs(e, time.now);
                }
                answers.addArray().add(bucket.measure(config, time.now)).add(throttle);
            }
        }
        return answers;
    }

    static ClientQuotaManagerConfig managerConfig(JsonNode asked) {
        return new ClientQuotaManagerConfig(asked.get("samples").intValue(), asked.get("window_seconds").intValue());
    }

    static Session session(JsonNode user) throws Exception {
        return new Session(new KafkaPrincipal("User", user.textValue()), InetAddress.getLoopbackAddress());
    }

    // null is no entity, "" the default entity, whose name Kafka has in angle brackets
    static Option<String> entity(JsonNode name, boolean sanitized) {
        if (name.isNull())
            return Option.empty();
        String text = name.textValue();
        return Option.apply(text.isEmpty() ? "<default>" : sanitized ? Sanitizer.sanitize(text) : text);
    }

    static void update(ClientQuotaManager manager, JsonNode step) {
        manager.updateQuota(entity(step.get(1), true), entity(step.get(2), false), entity(step.get(2), true),
            step.get(3).isNull() ? Option.empty() : Option.apply(new Quota(step.get(3).doubleValue(), true)));
    }

    static QuotaType type(String name) {
        switch (name) {
            case "Fetch":
                return QuotaType.Fetch$.MODULE$;
            case "Produce":
                return QuotaType.Produce$.MODULE$;
        }
        throw new IllegalArgumentException(name);
    }

    static JsonNode client(JsonNode asked) throws Exception {
        ManualTime time = new ManualTime();
        ArrayNode answers = JSON.createArrayNode();
        try (Metrics metrics = metrics(time)) {
            ClientQuotaManager manager = new ClientQuotaManager(managerConfig(asked), metrics,
                type(asked.get("type").textValue()), time, "oracle", Option.empty());
            for (JsonNode step : asked.get("steps")) {
                if (step.get(0).textValue().equals("quota")) {
                    update(manager, step);
                    continue;
                }
                time.now = step.get(1).longValue();
                Session session = session(step.get(2));
                String client = step.get(3).textValue();
                if (step.get(0).textValue().equals("record"))
                    answers.add(manager.maybeRecordAndGetThrottleTimeMs(session, client, step.get(4).doubleValue(), time.now));
                else if (manager.quotasEnabled())
                    manager.getOrCreateQuotaSensors(session, client).quotaSensor()
                        .record(-step.get(4).doubleValue(), time.now, false);
            }
            manager.shutdown();
        }
        return answers;
    }

    static JsonNode mutation(JsonNode asked) throws Exception {
        ManualTime time = new ManualTime();
        ArrayNode answers = JSON.createArrayNode();
        try (Metrics metrics = metrics(time)) {
            ControllerMutationQuotaManager manager =
                new ControllerMutationQuotaManager(managerConfig(asked), metrics, time, "oracle", Option.empty());
            for (JsonNode step : asked.get("steps")) {
                if (step.get(0).textValue().equals("quota")) {
                    update(manager, step);
                    continue;
                }
                time.now = step.get(1).longValue();
                Session session = session(step.get(2));
                String client = step.get(3).textValue();
                ControllerMutationQuota quota = step.get(5).booleanValue()
                    ? manager.newStrictQuotaFor(session, client) : manager.newPermissiveQuotaFor(session, client);
                boolean refused = false;
                try {
                    quota.record(step.get(4).doubleValue());
                } catch (ThrottlingQuotaExceededException e) {
                    refused = true;
                }
                answers.addArray().add(refused).add(quota.throttleTime());
            }
            manager.shutdown();
        }
        return answers;
    }

    static JsonNode replication(JsonNode asked) {
        ManualTime time = new ManualTime();
        ArrayNode answers = JSON.createArrayNode();
        try (Metrics metrics = metrics(time)) {
            ReplicationQuotaManager manager = new ReplicationQuotaManager(
                new ReplicationQuotaManagerConfig(asked.get("samples").intValue(), asked.get("window_seconds").intValue()),
                metrics, QuotaType.LeaderReplication$.MODULE$, time);
            MetricName name = metrics.metricName("byte-rate", "LeaderReplication",
                "Tracking byte-rate for LeaderReplication");
            for (JsonNode step : asked.get("steps")) {
                if (step.get(0).textValue().equals("limit")) {
                    manager.updateQuota(new Quota(step.get(1).doubleValue(), true));
                    continue;
                }
                time.now = step.get(1).longValue();
                if (step.get(0).textValue().equals("record"))
                    manager.record(step.get(2).longValue());
                else
                    answers.addArray().add(manager.isQuotaExceeded()).add((Double) metrics.metric(name).metricValue());
            }
        }
        return answers;
    }

    static JsonNode names(JsonNode asked) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        ManualTime time = new ManualTime();
        try (Metrics metrics = metrics(time)) {
            ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(11, 1);
            ClientQuotaManager[] managers = {
                new ClientQuotaManager(config, metrics, QuotaType.Produce$.MODULE$, time, "oracle", Option.empty()),
                new ClientQuotaManager(config, metrics, QuotaType.Fetch$.MODULE$, time, "oracle", Option.empty()),
                new ClientRequestQuotaManager(config, metrics, time, "oracle", Option.empty()),
                new ControllerMutationQuotaManager(config, metrics, time, "oracle", Option.empty())};
            for (ClientQuotaManager manager : managers) {
                manager.updateQuota(entity(asked.get("user"), true), entity(asked.get("client"), false),
                    entity(asked.get("client"), true), Option.apply(new Quota(1, true)));
                manager.getOrCreateQuotaSensors(session(asked.get("user")), asked.get("client").textValue());
            }
            for (QuotaType type : new QuotaType[] {QuotaType.LeaderReplication$.MODULE$, QuotaType.FollowerReplication$.MODULE$})
                new ReplicationQuotaManager(new ReplicationQuotaManagerConfig(11, 1), metrics, type, time).record(1);
            for (MetricName name : metrics.metrics().keySet())
                if (!name.group().equals("kafka-metrics-count"))
                    answers.addArray().add(name.name()).add(name.group()).add(JSON.valueToTree(name.tags()));
            for (ClientQuotaManager manager : managers)
                manager.shutdown();
        }
        return answers;
    }

    static JsonNode connection(JsonNode asked) throws Exception {
        ManualTime time = new ManualTime();
        ArrayNode answers = JSON.createArrayNode();
        Properties properties = new Properties();
        properties.put("process.roles", "broker");
        properties.put("node.id", "0");
        properties.put("controller.quorum.voters", "1@localhost:1");
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("quota.window.num", asked.get("samples").asText());
        properties.put("quota.window.size.seconds", asked.get("window_seconds").asText());
        KafkaConfig config = new KafkaConfig(properties);
        ListenerName listener = new ListenerName("PLAINTEXT");
        try (Metrics metrics = metrics(time)) {
            ConnectionQuotas quotas = new ConnectionQuotas(config, time, metrics);
            quotas.addListener(config, listener);
            for (JsonNode step : asked.get("steps")) {
                if (step.get(0).textValue().equals("quota")) {
                    quotas.updateIpConnectionRateQuota(
                        step.get(1).isNull() ? Option.empty() : Option.apply(InetAddress.getByName(step.get(1).textValue())),
                        step.get(2).isNull() ? Option.empty() : Option.apply((Object) step.get(2).intValue()));
                    continue;
                }
                time.now = step.get(1).longValue();
                try {
                    quotas.inc(listener, InetAddress.getByName(step.get(2).textValue()), null);
                    answers.add(0);
                } catch (ConnectionThrottledException e) {
                    answers.add(e.throttleTimeMs);
                }
            }
            quotas.close();
        }
        return answers;
    }

    // the controller validates, a broker's image describes; neither changes between requests
    static JsonNode entities(JsonNode asked) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        Constructor<ClientQuotaControlManager> make =
            ClientQuotaControlManager.class.getDeclaredConstructor(LogContext.class, SnapshotRegistry.class);
        make.setAccessible(true);
        ClientQuotaControlManager manager = make.newInstance(new LogContext(), new SnapshotRegistry(new LogContext()));
        Method alter = ClientQuotaControlManager.class.getDeclaredMethod("alterClientQuotas", Collection.class);
        alter.setAccessible(true);
        ClientQuotasImage image = ClientQuotasImage.EMPTY;
        for (JsonNode step : asked.get("steps")) {
            if (step.get(0).textValue().equals("describe")) {
                answers.add(describe(image, DescribeClientQuotasRequestDataJsonConverter.read(step.get(1), (short) 1)));
                continue;
            }
            AlterClientQuotasRequestData data = AlterClientQuotasRequestDataJsonConverter.read(step.get(1), (short) 1);
            Object result = alter.invoke(manager, new AlterClientQuotasRequest(data, (short) 1).entries());
            ArrayNode told = answers.addArray();
            for (Map.Entry<?, ?> one : ((Map<?, ?>) call(result, "response")).entrySet())
                told.addArray().add((JsonNode) JSON.valueToTree(((ClientQuotaEntity) one.getKey()).entries()))
                    .add(((ApiError) one.getValue()).error().code());
            if (data.validateOnly())
                continue;
            ClientQuotasDelta delta = new ClientQuotasDelta(image);
            for (Object record : (List<?>) call(result, "records")) {
                ClientQuotaRecord message = (ClientQuotaRecord) ((ApiMessageAndVersion) record).message();
                manager.replay(message);
                delta.replay(message);
            }
            image = delta.apply();
        }
        return answers;
    }

    static Object call(Object result, String method) throws Exception {
        Method found = Class.forName("org.apache.kafka.controller.ControllerResult").getDeclaredMethod(method);
        found.setAccessible(true);
        return found.invoke(result);
    }

    static JsonNode describe(ClientQuotasImage image, DescribeClientQuotasRequestData asked) {
        ArrayNode answer = JSON.createArrayNode();
        try {
            ArrayNode entries = JSON.createArrayNode();
            for (DescribeClientQuotasResponseData.EntryData entry : image.describe(asked).entries()) {
                Map<String, String> entity = new HashMap<>();
                entry.entity().forEach(part -> entity.put(part.entityType(), part.entityName()));
                Map<String, Double> values = new HashMap<>();
                entry.values().forEach(value -> values.put(value.key(), value.value()));
                entries.addArray().add((JsonNode) JSON.valueToTree(entity)).add((JsonNode) JSON.valueToTree(values));
            }
            answer.add(0).add(entries);
        } catch (ApiException e) {
            answer.add(Errors.forException(e).code()).add(JSON.createArrayNode());
        }
        return answer;
    }
}
