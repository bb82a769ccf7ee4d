// A line in, a line out, as Oracle.java: the states of a transactional id in Kafka's class TransactionState (Scala in 3.9, Java in 4.2).
//
//   states
//     -> {state id: [ids of the states from which it may be entered]}, and the ids of the states that may expire, as JSON

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

public class TransactionStates {
    static final int STATES = 8;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null) {
            try {
                System.out.println(new ObjectMapper().writeValueAsString(List.of(previous(), expirable())));
            } catch (Throwable error) {
                System.out.println("! " + error);
            }
            System.out.flush();
        }
    }

    static Class<?> stateClass() throws Exception {
        try {
            return Class.forName("org.apache.kafka.coordinator.transaction.TransactionState");
        } catch (ClassNotFoundException older) {
            return Class.forName("kafka.coordinator.transaction.TransactionState");
        }
    }

    static Object state(int id) throws Exception {
        return stateClass().getMethod("fromId", byte.class).invoke(null, (byte) id);
    }

    static Map<Integer, List<Integer>> previous() throws Exception {
        Map<Integer, List<Integer>> result = new TreeMap<>();
        for (int to = 0; to < STATES; to++) {
            Object states = stateClass().getMethod("validPreviousStates").invoke(state(to));
            Method contains = contains(states);
            List<Integer> ids = new ArrayList<>();
            for (int from = 0; from < STATES; from++) {
                if ((boolean) contains.invoke(states, state(from))) ids.add(from);
            }
            result.put(to, ids);
        }
        return result;
    }

    static Method contains(Object states) throws Exception {
        Class<?> kind = states instanceof java.util.Set ? java.util.Set.class : Class.forName("scala.collection.SetOps");
        return kind.getMethod("contains", Object.class);
    }

    static List<Integer> expirable() throws Exception {
        List<Integer> ids = new ArrayList<>();
        for (int id = 0; id < STATES; id++) {
            if ((boolean) stateClass().getMethod("isExpirationAllowed").invoke(state(id))) ids.add(id);
        }
        return ids;
    }
}
