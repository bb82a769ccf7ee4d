import java.lang.reflect.*;
import java.util.*;

// Prints "key name lowest highest" for every API that a broker of this release advertises, by reflection: one source for the jars
// of all releases since 0.9. The argument is the listener type, for releases that distinguish listeners.

public class Releases {
    static Class<?> find(String name) { try { return Class.forName(name); } catch (Throwable e) { return null; } }
    static Method method(Class<?> c, String n, Class<?>... a) { try { Method m = c.getMethod(n, a); m.setAccessible(true); return m; } catch (NoSuchMethodException e) { return null; } }
    public static void main(String[] args) throws Exception {
        Class<?> keys = Class.forName("org.apache.kafka.common.protocol.ApiKeys");
        Class<?> protocol = find("org.apache.kafka.common.protocol.Protocol");
        Class<?> listener = find("org.apache.kafka.common.message.ApiMessageType$ListenerType");
        Set<Object> exposed = null;
        if (listener != null) {
            Method of = method(keys, "apisForListener", listener);
            String wanted = args[0];
            Object type = null;
            for (Object o : listener.getEnumConstants()) if (o.toString().equals(wanted)) type = o;
            exposed = new HashSet<>((Collection<?>) of.invoke(null, type));
        }
        for (Object k : keys.getEnumConstants()) {
            int id = ((Number) keys.getField("id").get(k)).intValue();
            if (exposed != null && !exposed.contains(k)) continue;
            int min, max;
            Method toApi = method(keys, "toApiVersionForApiResponse", boolean.class, listener == null ? Object.class : listener);
            if (toApi == null) toApi = method(keys, "toApiVersion", boolean.class);
            Method latest = method(keys, "latestVersion"), oldest = method(keys, "oldestVersion");
            if (toApi != null) {
                Object r;
                if (toApi.getParameterCount() == 2) { Object type = null; for (Object o : listener.getEnumConstants()) if (o.toString().equals(args[0])) type = o; r = toApi.invoke(k, false, type); }
                else r = toApi.invoke(k, false);
                Optional<?> o = (Optional<?>) r;
                if (!o.isPresent()) continue;
                Object v = o.get();
                min = ((Number) v.getClass().getMethod("minVersion").invoke(v)).intValue();
                max = ((Number) v.getClass().getMethod("maxVersion").invoke(v)).intValue();
            } else if (latest != null && oldest != null) {
                min = ((Number) oldest.invoke(k)).intValue(); max = ((Number) latest.invoke(k)).intValue();
            } else {
                Object[][] requests = (Object[][]) protocol.getField("REQUESTS").get(null);
                if (id >= requests.length || requests[id] == null) continue;
                max = requests[id].length - 1; min = 0;
                try { min = ((short[]) protocol.getField("MIN_VERSIONS").get(null))[id]; } catch (NoSuchFieldException e) { }
            }
            String name = k.toString();
            System.out.println(id + " " + ((Enum<?>) k).name() + " " + min + " " + max);
        }
    }
}
