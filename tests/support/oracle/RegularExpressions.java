// A line in, a line out, as Oracle.java: regular expressions of consumer groups.
//
//   match <json>: [pattern, [topic]]
//     -> {"matches": [boolean]}, or {"error": text} if the coordinator refuses the pattern
//
// A line that fails in another way is answered with "! " and the exception.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.re2j.Pattern;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.errors.InvalidRegularExpression;

public class RegularExpressions {
    static final ObjectMapper JSON = new ObjectMapper();

    // RE2J compiles by recursion, which needs a large stack for long repetitions.
    static final long STACK_BYTES = 1L << 29;

    public static void main(String[] args) {
        new Thread(null, RegularExpressions::run, "matcher", STACK_BYTES).start();
    }

    static void run() {
        try {
            answerLines();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    static void answerLines() throws Exception {
        Method validate = Class.forName("org.apache.kafka.coordinator.group.Utils")
            .getDeclaredMethod("throwIfRegularExpressionIsInvalid", String.class);
        validate.setAccessible(true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                System.out.println(JSON.writeValueAsString(match(validate, JSON.readTree(line.split(" ", 2)[1]))));
            } catch (Throwable error) {
                System.out.println("! " + error);
            }
            System.out.flush();
        }
    }

    static ObjectNode match(Method validate, JsonNode question) throws Throwable {
        String text = question.get(0).asText();
        ObjectNode answer = JSON.createObjectNode();
        try {
            validate.invoke(null, text);
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof InvalidRegularExpression) {
                return answer.put("error", error.getCause().getMessage());
            }
            throw error.getCause();
        }
        Pattern pattern = Pattern.compile(text);
        ArrayNode matches = answer.putArray("matches");
        question.get(1).forEach(name -> matches.add(pattern.matcher(name.asText()).matches()));
        return answer;
    }
}
