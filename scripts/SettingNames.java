import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Prints the names of the settings of producers, consumers, topics and brokers that a release of Kafka has. */
public final class SettingNames {
    /** Where a release keeps them; the first class that it has counts. */
    private static final Map<String, String[]> CLASSES =
            Map.of(
                    "producer", new String[] {"org.apache.kafka.clients.producer.ProducerConfig"},
                    "consumer", new String[] {"org.apache.kafka.clients.consumer.ConsumerConfig"},
                    "topic", new String[] {"org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig$"},
                    "broker", new String[] {"org.apache.kafka.server.config.AbstractKafkaConfig", "kafka.server.KafkaConfig$"});

    public static void main(String[] arguments) throws ReflectiveOperationException {
        for (String kind : CLASSES.keySet()) {
            for (Object name : new TreeSet<Object>(namesOf(definition(kind)))) {
                System.out.println(kind + " " + name);
            }
        }
    }

    private static Object definition(String kind) throws ReflectiveOperationException {
        for (String name : CLASSES.get(kind)) {
            Class<?> type;
            try {
                type = Class.forName(name);
            } catch (ClassNotFoundException absent) {
                continue;
            }
            // Newer classes of topics have the brokers' defaults for topics, too, in a field of the general type.
            for (String ending : new String[] {"LogConfigDef", "ConfigDef"}) {
                for (Field field : type.getDeclaredFields()) {
                    if (field.getType().getName().endsWith(ending)) {
                        field.setAccessible(true);
                        boolean ofObject = !Modifier.isStatic(field.getModifiers());
                        return field.get(ofObject ? type.getField("MODULE$").get(null) : null);
                    }
                }
            }
        }
        throw new ReflectiveOperationException("no names of a " + kind);
    }

    /** A method since 0.10.1, and a field before. */
    private static Set<?> namesOf(Object definition) throws ReflectiveOperationException {
        for (Class<?> type = definition.getClass(); type != null; type = type.getSuperclass()) {
            try {
                Field field = type.getDeclaredField("configKeys");
                field.setAccessible(true);
                return ((Map<?, ?>) field.get(definition)).keySet();
            } catch (NoSuchFieldException absent) {
                continue;
            }
        }
        throw new ReflectiveOperationException("no names in " + definition.getClass());
    }
}
