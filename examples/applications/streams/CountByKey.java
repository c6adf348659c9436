import java.time.Duration;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Materialized;

/** Counts the inputs of each key in a state store; an output has the count, and the id of the last input. */
public final class CountByKey {
    private static final Pattern ID = Pattern.compile("\"id\": \"([^\"]*)\"");

    public static void main(String[] arguments) {
        String bootstrap = arguments[0], input = arguments[1], output = arguments[2], group = arguments[3];
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, group);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[4]);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, arguments[5]);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 3);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 500);
        properties.put("auto.offset.reset", "earliest");
        properties.put("session.timeout.ms", 6000);
        properties.put("heartbeat.interval.ms", 1000);
        properties.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10000);

        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(input)
            .groupByKey()
            .aggregate(() -> "0 none", CountByKey::counted, Materialized.as("counts"))
            .toStream()
            .mapValues(state -> String.format(
                "{\"id\": \"%s\", \"result\": %s}", state.split(" ")[1], state.split(" ")[0]))
            .to(output);
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(8))));
        streams.start();
    }

    private static String counted(String key, String input, String state) {
        Matcher id = ID.matcher(input);
        return (Long.parseLong(state.split(" ")[0]) + 1) + " " + (id.find() ? id.group(1) : "none");
    }
}
