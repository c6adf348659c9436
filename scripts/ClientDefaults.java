import java.lang.reflect.Field;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;

/**
 * Prints the defaults of the producers and consumers of a release of Kafka's own client: those of the settings that are
 * its arguments, and whether a producer that was given nothing but an address really is idempotent.
 */
public final class ClientDefaults {
    private static final String SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer";

    public static void main(String[] wanted) throws Exception {
        Map<?, ?> producer = definitions(ProducerConfig.class);
        Map<?, ?> consumer = definitions(ConsumerConfig.class);
        for (String name : wanted) {
            Object definition = producer.containsKey(name) ? producer.get(name) : consumer.get(name);
            if (definition != null && !name.equals("enable.idempotence")) {
                Object value = field(definition, "defaultValue");
                System.out.println(name + " " + (value instanceof String || value instanceof Number || value instanceof Boolean ? value : ""));
            }
        }
        if (producer.containsKey("enable.idempotence")) {
            System.out.println("enable.idempotence " + idempotent());
        }
        Runtime.getRuntime().halt(0);
    }

    /** What a producer does counts, and not what its table says (KAFKA-13598). */
    private static boolean idempotent() throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", "127.0.0.1:1");
        properties.put("key.serializer", SERIALIZER);
        properties.put("value.serializer", SERIALIZER);
        return field(new KafkaProducer<String, String>(properties), "transactionManager") != null;
    }

    private static Map<?, ?> definitions(Class<?> config) throws Exception {
        for (Field field : config.getDeclaredFields()) {
            if (field.getType().getName().endsWith("ConfigDef")) {
                field.setAccessible(true);
                return (Map<?, ?>) field(field.get(null), "configKeys");
            }
        }
        throw new NoSuchFieldException("no definitions in " + config);
    }

    private static Object field(Object object, String name) throws Exception {
        Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(object);
    }
}
