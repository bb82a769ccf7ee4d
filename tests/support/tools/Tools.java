// Runs Kafka's command-line tools in one JVM. Each line of standard input is a JSON array [main class, [arguments], standard input of the
// tool, milliseconds after which threads that it leaves running are stopped];
// each line of standard output is a JSON object {"code", "out", "err"} with the exit code and what the tool printed.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.server.util.ShutdownableThread;

public final class Tools {
    static final class Exited extends Error {
        Exited() {
            super("the tool ended", null, false, false);
        }
    }

    static Integer code;
    static final List<Runnable> hooks = new ArrayList<>();
    static final List<Thread> endless = new ArrayList<>();

    static void exited(int status) {
        if (code == null) {
            code = status;
        }
        throw new Exited();
    }

    static void run(String name, String[] arguments, long stoppedAfterMs) throws Throwable {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Exited)) {
                e.getCause().printStackTrace();
                code = 1;
            }
        }
        if (stoppedAfterMs > 0) {
            Thread.sleep(stoppedAfterMs);
            stopFetchers();
        }
        for (Runnable hook : hooks) {
            hook.run();
        }
        hooks.clear();
        awaitProducers();
    }

    /** Stops the threads of ReplicaVerificationTool, which only the end of the process would stop. */
    static void stopFetchers() throws InterruptedException {
        List<ShutdownableThread> fetchers = new ArrayList<>();
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread instanceof ShutdownableThread fetcher) {
                fetcher.initiateShutdown();
                fetchers.add(fetcher);
            }
        }
        for (ShutdownableThread fetcher : fetchers) {
            fetcher.awaitShutdown();
        }
    }

    /** Waits until the threads of producers end, because they print their last results. A thread that does not end is waited for only once. */
    static void awaitProducers() throws InterruptedException {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().startsWith("kafka-producer-network-thread") && !endless.contains(thread)) {
                thread.join(5_000);
                if (thread.isAlive()) {
                    endless.add(thread);
                }
            }
        }
    }

    public static void main(String[] ignored) throws Throwable {
        ObjectMapper json = new ObjectMapper();
        PrintStream answers = System.out;
        InputStream questions = System.in;
        Exit.setExitProcedure((status, message) -> exited(status));
        Exit.setHaltProcedure((status, message) -> exited(status));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        // Set once, because Scala keeps the stream that it finds first.
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        BufferedReader lines = new BufferedReader(new InputStreamReader(questions, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode question = json.readTree(line);
            List<String> arguments = new ArrayList<>();
            question.get(1).forEach(argument -> arguments.add(argument.asText()));
            out.reset();
            err.reset();
            System.setIn(new ByteArrayInputStream(question.get(2).asText().getBytes(StandardCharsets.UTF_8)));
            code = null;
            run(question.get(0).asText(), arguments.toArray(new String[0]), question.get(3).asLong());
            System.out.flush();
            System.err.flush();
            Map<String, Object> answer = Map.of(
                "code", code == null ? 0 : code,
                "out", out.toString(StandardCharsets.UTF_8),
                "err", err.toString(StandardCharsets.UTF_8));
            answers.println(json.writeValueAsString(answer));
            answers.flush();
        }
    }
}
