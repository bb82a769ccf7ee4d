// Answers one line per line: Kafka's own message and record classes for tests written in Python.
//
//   enc <Message> <version> <json>     -> hex of the bytes that Kafka writes
//   dec <Message> <version> <hex>      -> <bytes read> <hex of what Kafka writes back> <json>
//   many <Message> <version> <json>    -> json: for every pair of the array [<json>, <hex>] the answers to enc and to dec
//   move <Message> <version> <other version>,<hex>  -> hex of what Kafka writes in the other version, if it can
//   layouts <Message>                  -> json: for every version the layout as a tree of types
//   record <hex of the key> <hex of the value> -> hex of both, as the group coordinator writes back what it read
//   recordtypes <group|share|transaction>  -> json: the number in front of a coordinator's keys to the names of key and value
//   batch <json>                       -> hex of the record batch, or the messages of magic 0 and 1, that Kafka builds
//   records <hex>                      -> json: header and records of every batch, as Kafka reads them
//   marker <json>                      -> hex of the control batch that ends a transaction
//   waits                              -> json: api key to the first version in which the client itself waits for a throttle to end, or -1
//
// The answer to a line that fails is "! " and the exception.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.DefaultRecordBatch;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.AbstractResponse;

public class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split(" ", 4));
            } catch (InvocationTargetException e) {
                answer = "! " + e.getCause();
            } catch (Throwable e) {
                answer = "! " + e;
            }
            out.print(answer.replace('\n', ' ') + "\n");
            out.flush();
        }
    }

    static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "enc":
                return HEX.formatHex(bytes(fromJson(words[1], Short.parseShort(words[2]), words[3]), words[2]));
            case "dec":
                return decode(words[1], Short.parseShort(words[2]), words.length > 3 ? words[3] : "");
            case "many":
                return many(words[1], Short.parseShort(words[2]), JSON.readTree(words[3]));
            case "move":
                String[] rest = words[3].split(",", -1);
                return HEX.formatHex(bytes(fromBytes(words[1], Short.parseShort(words[2]), HEX.parseHex(rest[1])), rest[0]));
            case "layouts":
                return layouts(words[1]);
            case "record":
                return record(HEX.parseHex(words[1]), HEX.parseHex(words[2]));
            case "recordtypes":
                return recordTypes(words[1]);
            case "batch":
                return HEX.formatHex(batch(JSON.readTree(words[1])));
            case "records":
                return records(HEX.parseHex(words[1]));
            case "marker":
                return HEX.formatHex(bytes(marker(JSON.readTree(words[1]))));
            case "waits":
                return waits();
        }
        throw new IllegalArgumentException(words[0]);
    }

    // requests, responses and headers; then data inside messages and records
    static final String[] PLACES = {
        "org.apache.kafka.common.message.%sData", "org.apache.kafka.common.message.%s",
        "org.apache.kafka.coordinator.group.generated.%s", "org.apache.kafka.coordinator.transaction.generated.%s",
        "org.apache.kafka.coordinator.share.generated.%s"};

    static Class<?> type(String message, String suffix) throws Exception {
        for (String place : PLACES)
            try {
                return Class.forName(String.format(place, message) + suffix);
            } catch (ClassNotFoundException e) {
                continue;
            }
        throw new ClassNotFoundException(message + suffix);
    }

    static Message fromJson(String message, short version, String json) throws Exception {
        return (Message) type(message, "JsonConverter").getMethod("read", JsonNode.class, short.class)
            .invoke(null, JSON.readTree(json), version);
    }

    static byte[] bytes(Message message, String version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, Short.parseShort(version)));
        message.write(new ByteBufferAccessor(buffer), cache, Short.parseShort(version));
        if (buffer.hasRemaining())
            throw new IllegalStateException("size and write differ");
        return buffer.array();
    }

    static Message fromBytes(String message, short version, byte[] bytes) throws Exception {
        return (Message) type(message, "").getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), version);
    }

    static String decode(String message, short version, String hex) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(hex));
        Message data = (Message) type(message, "").getConstructor(Readable.class, short.class)
            .newInstance(new ByteBufferAccessor(buffer), version);
        int read = buffer.position();
        JsonNode json = (JsonNode) type(message, "JsonConverter").getMethod("write", type(message, ""), short.class)
            .invoke(null, data, version);
        return read + " " + HEX.formatHex(bytes(data, Short.toString(version))) + " " + JSON.writeValueAsString(json);
    }

    static String many(String message, short version, JsonNode pairs) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode pair : pairs) {
            Message told = (Message) type(message, "JsonConverter").getMethod("read", JsonNode.class, short.class)
                .invoke(null, pair.get(0), version);
            answers.addArray().add(HEX.formatHex(bytes(told, Short.toString(version))))
                .add(decode(message, version, pair.get(1).textValue()));
        }
        return JSON.writeValueAsString(answers);
    }

    static String waits() throws Exception {
        ObjectNode found = JSON.createObjectNode();
        for (ApiKeys key : ApiKeys.values()) {
            int first = -1;
            for (short version = key.latestVersion(); version >= key.oldestVersion(); version--) {
                ObjectSerializationCache cache = new ObjectSerializationCache();
                Message blank = key.messageType.newResponse();
                ByteBuffer buffer = ByteBuffer.allocate(blank.size(cache, version));
                blank.write(new ByteBufferAccessor(buffer), cache, version);
                buffer.flip();
                if (response(key, buffer, version).shouldClientThrottle(version)) {
                    first = version;
                }
            }
            found.put(Integer.toString(key.id), first);
        }
        return found.toString();
    }

    /** The parameter is a ByteBuffer in 3.9 and a Readable in 4.2. */
    static AbstractResponse response(ApiKeys key, ByteBuffer buffer, short version) throws Exception {
        for (Method method : AbstractResponse.class.getMethods()) {
            if (method.getName().equals("parseResponse") && method.getParameterCount() == 3) {
                boolean plain = method.getParameterTypes()[1] == ByteBuffer.class;
                return (AbstractResponse) method.invoke(null, key, plain ? buffer : new ByteBufferAccessor(buffer), version);
            }
        }
        throw new NoSuchMethodException("AbstractResponse.parseResponse");
    }

    static String layouts(String message) throws Exception {
        Schema[] schemas = (Schema[]) type(message, "").getField("SCHEMAS").get(null);
        ObjectNode versions = JSON.createObjectNode();
        for (int version = 0; version < schemas.length; version++)
            if (schemas[version] != null)
                versions.set(Integer.toString(version), tree(schemas[version]));
        return JSON.writeValueAsString(versions);
    }

    // by name, because the older release lacks the class
    static String record(byte[] key, byte[] value) throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde");
        Object serde = type.getConstructor().newInstance();
        Object read = type.getMethod("deserialize", ByteBuffer.class, ByteBuffer.class)
            .invoke(serde, ByteBuffer.wrap(key), ByteBuffer.wrap(value));
        return HEX.formatHex((byte[]) type.getMethod("serializeKey", Object.class).invoke(serde, read)) + " "
            + HEX.formatHex((byte[]) type.getMethod("serializeValue", Object.class).invoke(serde, read));
    }

    static String recordTypes(String coordinator) throws Exception {
        ObjectNode types = JSON.createObjectNode();
        String name = String.format("org.apache.kafka.coordinator.%s.generated.CoordinatorRecordType", coordinator);
        for (Object type : Class.forName(name).getEnumConstants()) {
            ArrayNode names = types.putArray(type.getClass().getMethod("id").invoke(type).toString());
            for (String part : new String[] {"newRecordKey", "newRecordValue"})
                names.add(type.getClass().getMethod(part).invoke(type).getClass().getSimpleName());
        }
        return JSON.writeValueAsString(types);
    }

    @SuppressWarnings("unchecked")
    static JsonNode tree(Type type) throws Exception {
        ObjectNode node = JSON.createObjectNode();
        if (type instanceof Schema) {
            ArrayNode fields = node.putArray("struct");
            for (BoundField field : ((Schema) type).fields())
                fields.addArray().add(field.def.name).add(tree(field.def.type));
        } else if (type instanceof TaggedFields) {
            ObjectNode tags = node.putObject("tags");
            java.lang.reflect.Field fields = TaggedFields.class.getDeclaredField("fields");
            fields.setAccessible(true);
            for (Map.Entry<Integer, Field> tag : new TreeMap<>((Map<Integer, Field>) fields.get(type)).entrySet())
                tags.putArray(tag.getKey().toString()).add(tag.getValue().name).add(tree(tag.getValue().type));
        } else if (type.arrayElementType().isPresent()) {
            node.put("array", type.getClass().getSimpleName() + (type.isNullable() ? " nullable" : ""));
            node.set("of", tree(type.arrayElementType().get()));
        } else {
            node.put("type", type.toString());
        }
        return node;
    }

    static byte[] batch(JsonNode spec) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(1024);
        CompressionType kind = CompressionType.forId(spec.get("compression").intValue());
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            new org.apache.kafka.common.utils.ByteBufferOutputStream(buffer), (byte) spec.get("magic").intValue(),
            Compression.of(kind).build(),
            spec.get("log_append_time").booleanValue() ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
            spec.get("base_offset").longValue(), spec.get("now_ms").longValue(),
            spec.get("producer_id").longValue(), (short) spec.get("producer_epoch").intValue(),
            spec.get("base_sequence").intValue(), spec.get("transactional").booleanValue(), false,
            spec.get("leader_epoch").intValue(), 1 << 26);
        for (JsonNode record : spec.get("records")) {
            JsonNode pairs = record.get("headers");
            Header[] headers = new Header[pairs.size()];
            for (int i = 0; i < headers.length; i++)
                headers[i] = new RecordHeader(pairs.get(i).get(0).textValue(), binary(pairs.get(i).get(1)));
            builder.append(record.get("timestamp").longValue(), binary(record.get("key")), binary(record.get("value")), headers);
        }
        return bytes(builder.build());
    }

    static byte[] bytes(MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    static MemoryRecords marker(JsonNode spec) throws Exception {
        ControlRecordType type = spec.get("committed").booleanValue() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        return MemoryRecords.withEndTransactionMarker(spec.get("base_offset").longValue(),
            spec.get("timestamp").longValue(), spec.get("leader_epoch").intValue(), spec.get("producer_id").longValue(),
            (short) spec.get("producer_epoch").intValue(),
            new EndTransactionMarker(type, spec.get("coordinator_epoch").intValue()));
    }

    static byte[] binary(JsonNode node) throws Exception {
        return node.isNull() ? null : node.binaryValue();
    }

    static String records(byte[] bytes) throws Exception {
        ArrayNode batches = JSON.createArrayNode();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            batch.ensureValid();
            ObjectNode node = batches.addObject();
            node.put("base_offset", batch.baseOffset()).put("last_offset", batch.lastOffset());
            node.put("partition_leader_epoch", batch.partitionLeaderEpoch()).put("size", batch.sizeInBytes());
            node.put("producer_id", batch.producerId()).put("producer_epoch", batch.producerEpoch());
            node.put("base_sequence", batch.baseSequence()).put("max_timestamp", batch.maxTimestamp());
            node.put("compression", batch.compressionType().id).put("crc", batch.checksum());
            node.put("is_transactional", batch.isTransactional()).put("is_control", batch.isControlBatch());
            node.put("is_log_append_time", batch.timestampType() == TimestampType.LOG_APPEND_TIME);
            node.put("record_count", batch.countOrNull());
            node.put("magic", batch.magic());
            if (batch instanceof DefaultRecordBatch) {
                node.put("base_timestamp", ((DefaultRecordBatch) batch).baseTimestamp());
                OptionalLong horizon = batch.deleteHorizonMs();
                node.put("delete_horizon_ms", horizon.isPresent() ? horizon.getAsLong() : null);
            }
            ArrayNode list = node.putArray("records");
            for (Record record : batch) {
                record.ensureValid();
                ObjectNode item = list.addObject().put("offset", record.offset()).put("timestamp", record.timestamp());
                item.put("key", base64(record.key())).put("value", base64(record.value()));
                ArrayNode headers = item.putArray("headers");
                for (Header header : record.headers())
                    headers.addArray().add(header.key())
                        .add(header.value() == null ? null : Base64.getEncoder().encodeToString(header.value()));
            }
        }
        return JSON.writeValueAsString(batches);
    }

    static String base64(ByteBuffer buffer) {
        if (buffer == null)
            return null;
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return Base64.getEncoder().encodeToString(bytes);
    }
}
