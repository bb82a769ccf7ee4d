// A line in, a line out, as Oracle.java: regular expressions of consumer groups.
//
//   match <json>: [pattern, [topic]]
//     -> {"matches": [boolean]}, or {"error": text} if the coordinator refuses the pattern
//   tables
//     -> {table: {class: [[low, high, stride]]}, "folds": [[code point, next one that equals it if case is ignored]]}
//
// A line that fails in another way is answered with "! " and the exception.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.re2j.Pattern;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
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
                String[] parts = line.split(" ", 2);
                ObjectNode answer = parts[0].equals("tables") ? tables() : match(validate, JSON.readTree(parts[1]));
                System.out.println(JSON.writeValueAsString(answer));
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

    static ObjectNode tables() throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        Class<?> tables = Class.forName("com.google.re2j.UnicodeTables");
        for (String name : new String[] {"CATEGORIES", "SCRIPTS", "FOLD_CATEGORIES", "FOLD_SCRIPT"}) {
            Field field = tables.getDeclaredField(name);
            field.setAccessible(true);
            answer.set(name, JSON.valueToTree(field.get(null)));
        }
        Method fold = Class.forName("com.google.re2j.Unicode").getDeclaredMethod("simpleFold", int.class);
        fold.setAccessible(true);
        ArrayNode folds = answer.putArray("folds");
        for (int codePoint = 0; codePoint <= Character.MAX_CODE_POINT; codePoint++) {
            int next = (int) fold.invoke(null, codePoint);
            if (next != codePoint) {
                folds.addArray().add(codePoint).add(next);
            }
        }
        return answer;
    }
}
