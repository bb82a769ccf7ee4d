import java.util.*;
import java.util.function.Function;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;

// Prints the settings that a Kafka release defines, one per line and tab-separated:
// table, name, type, default, validator, mode, place in the order of the checks, broker settings whose values apply where this one is not set.
// The place is empty for a broker setting that cannot be changed at run time.
// A missing default is "(required)", a default of null is "(null)", no validator is "(any)".
// "(not empty) " before the validator of a list: it rejects the empty list.
// Modes: r read-only, b dynamic for one broker, c dynamic for one broker or all; i at the end: internal.
// Works with the jars of 3.9 and 4.x: members that are public in only one of them are called by reflection.

public class Settings {
    static Set<String> dynamic, perBroker, security;

    static Object module(String name) throws Exception { return Class.forName(name).getField("MODULE$").get(null); }

    static Object call(Object target, String name, Object... arguments) throws Exception {
        for (var method : target.getClass().getDeclaredMethods())
            if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                method.setAccessible(true);
                return method.invoke(target, arguments);
            }
        throw new NoSuchMethodException(name);
    }

    static Object callStatic(String type, String name, Object... arguments) throws Exception {
        for (var method : Class.forName(type).getDeclaredMethods())
            if (method.getName().equals(name) && method.getParameterCount() == arguments.length) {
                method.setAccessible(true);
                return method.invoke(null, arguments);
            }
        throw new NoSuchMethodException(name);
    }

    static Set<String> names(Object scalaIterable) {
        var found = new LinkedHashSet<String>();
        var each = ((scala.collection.Iterable<?>) scalaIterable).iterator();
        while (each.hasNext()) found.add((String) each.next());
        return found;
    }

    static void print(String table, Map<String, ConfigKey> keys, Set<String> checked, Function<String, Collection<String>> fallbacks) {
        var order = new ArrayList<>(checked);
        for (ConfigKey key : new TreeMap<>(keys).values()) {
            String defaultText = !key.hasDefault() ? "(required)"
                : key.defaultValue == null ? "(null)" : ConfigDef.convertToString(key.defaultValue, key.type);
            String mode = !table.equals("broker") ? "c"
                : perBroker.contains(key.name) ? "b" : dynamic.contains(key.name) ? "c" : "r";
            int place = order.indexOf(key.name);
            System.out.println(String.join("\t", table, key.name, key.type.toString(), defaultText,
                range(key), mode + (key.internalConfig ? "i" : ""),
                place < 0 ? "" : String.valueOf(place), String.join(",", fallbacks.apply(key.name))));
        }
    }

    static String range(ConfigKey key) {
        String validator = key.validator == null ? "(any)" : key.validator.toString();
        try {
            if (key.validator instanceof ConfigDef.ValidList list) list.ensureValid(key.name, List.of());
        } catch (ConfigException error) {
            return "(not empty) " + validator;
        }
        return validator;
    }

    static Collection<String> fallbacks(String name) {
        try {
            var all = new ArrayList<>(names(callStatic("kafka.server.DynamicBrokerConfig", "brokerConfigSynonyms", name, true)));
            return all.subList(all.indexOf(name) + 1, all.size());
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] arguments) throws Exception {
        Object modes = module("kafka.server.DynamicBrokerConfig$");
        dynamic = names(call(modes, "AllDynamicConfigs"));
        perBroker = names(call(modes, "PerBrokerConfigs"));
        ConfigDef broker = (ConfigDef) call(module("kafka.server.KafkaConfig$"), "configDef");
        // Also contains all broker settings that can be changed at run time, in the order in which Kafka checks the values of a change.
        var changeable = (Map<String, ConfigKey>) call(module("kafka.server.DynamicConfig$Broker$"), "configKeys");
        print("broker", broker.configKeys(), changeable.keySet(), Settings::fallbacks);
        var onlyDynamic = new TreeMap<>(changeable);
        onlyDynamic.keySet().removeAll(broker.configKeys().keySet());
        print("dynamic", onlyDynamic, changeable.keySet(), name -> List.of());
        var topics = (ConfigDef) callStatic("org.apache.kafka.storage.internals.log.LogConfig", "configDefCopy");
        print("topic", topics.configKeys(), topics.configKeys().keySet(), name ->
            Optional.ofNullable(ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.get(name)).map(List::of).orElse(List.of()));
        try {
            var groups = (ConfigDef) callStatic("org.apache.kafka.coordinator.group.GroupConfig", "configDef");
            print("group", groups.configKeys(), groups.configKeys().keySet(), name -> List.of());
        } catch (ClassNotFoundException error) {
            // Groups have settings of their own since 4.0.
        }
    }
}
