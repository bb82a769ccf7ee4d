// Answers one line per line, like Oracle.java: how a broker converts records for old clients. 3.x only; 4.0 removed conversions.
//
//   down <magic> <first offset> <hex>  -> hex of the records in the response to an old fetch
//   up <json>                          -> hex of the batch appended for an old produce: LogValidator
//
// The answer to a line that fails is "! " and the exception.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

public class Conversions {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                String[] words = line.split(" ", -1);
                answer = hex(words[0].equals("down") ? down(words) : up(JSON.readTree(words[1])));
            } catch (Throwable e) {
                answer = "! " + e;
            }
            System.out.println(answer.replace('\n', ' '));
            System.out.flush();
        }
    }

    static MemoryRecords readable(String hex) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex)));
    }

    static String hex(MemoryRecords records) {
        ByteBuffer buffer = records.buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HEX.formatHex(bytes);
    }

    static MemoryRecords down(String[] words) {
        return readable(words[3]).downConvert(Byte.parseByte(words[1]), Long.parseLong(words[2]), Time.SYSTEM).records();
    }

    static MemoryRecords up(JsonNode spec) {
        CompressionType source = CompressionType.forId(spec.get("source").intValue());
        CompressionType target = CompressionType.forId(spec.get("target").intValue());
        LogValidator validator = new LogValidator(readable(spec.get("data").textValue()), new TopicPartition("topic", 0),
            standing(spec.get("now_ms").longValue()), source, Compression.of(target).build(), false, (byte) 2,
            spec.get("log_append_time").booleanValue() ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
            Long.MAX_VALUE, Long.MAX_VALUE, spec.get("leader_epoch").intValue(), AppendOrigin.CLIENT,
            MetadataVersion.latestProduction());
        return validator.validateMessagesAndAssignOffsets(PrimitiveRef.ofLong(spec.get("base_offset").longValue()),
            proxy(LogValidator.MetricsRecorder.class, null), BufferSupplier.NO_CACHING).validatedRecords;
    }

    static Time standing(long now) {
        return proxy(Time.class, now);
    }

    static <T> T proxy(Class<T> type, Object answer) {
        return type.cast(Proxy.newProxyInstance(Conversions.class.getClassLoader(), new Class<?>[] {type},
            (proxy, method, arguments) -> answer));
    }
}
