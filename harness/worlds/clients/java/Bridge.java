import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;

/**
 * Producers and consumers of Kafka's own client for the harness: calls come on standard input, answers go to standard
 * output, as messages.py and docs/guides/client-programs.md say. The program ends when its input ends, so it never
 * outlives the harness.
 *
 * <p>Every client has one thread, which does the client's calls in their order. Jackson, which is in every release of
 * Kafka, reads and writes the lines. Janino compiles these files; it knows no lambdas, and takes generic types for
 * comments.
 */
public final class Bridge {
    /** The one header that records may have. */
    static final String HEADER = "ackproof";

    private final ObjectMapper json = new ObjectMapper();
    private final OutputStream answers;
    private final Map<Integer, Client> clients = new HashMap<Integer, Client>();

    private Bridge(OutputStream answers) {
        this.answers = answers;
    }

    public static void main(String[] arguments) {
        FileOutputStream output = new FileOutputStream(FileDescriptor.out);
        System.setOut(System.err); // logs must not come between answers
        try {
            new Bridge(new BufferedOutputStream(output, 1 << 16)).serve(new BufferedInputStream(System.in, 1 << 16));
        } catch (Throwable error) { // also of an input that ended within a line: the harness died
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(0);
    }

    private void serve(InputStream calls) throws IOException {
        send(hello());
        JsonParser lines = json.getFactory().createParser(calls);
        JsonNode line;
        while ((line = (JsonNode) json.readTree(lines)) != null) {
            Call call = new Call(line);
            Integer number = Integer.valueOf(call.client);
            Client client = (Client) clients.get(number);
            if (client == null) {
                client = call.method.equals("new_producer") ? (Client) new Producer(this) : (Client) new Consumer(this);
                clients.put(number, client);
            }
            client.take(call);
            if (call.last()) {
                clients.remove(number);
            }
        }
    }

    private static ObjectNode hello() throws IOException {
        String version = version();
        ObjectNode hello = JsonNodeFactory.instance.objectNode();
        hello.put("hello", 1).put("name", "java").put("version", version);
        hello.putArray("capabilities").add("transactions").add("tombstones").add("subscription").add("commits");
        hello.putArray("protocols").add("classic");
        if (Integer.parseInt(version.substring(0, version.indexOf('.'))) >= 4) { // KIP-848 is finished there
            hello.withArray("protocols").add("consumer");
        }
        ObjectNode defaults = hello.putObject("defaults");
        Answer.defaults(defaults.putObject("producer"), ProducerConfig.configDef());
        Answer.defaults(defaults.putObject("consumer"), ConsumerConfig.configDef());
        return hello;
    }

    /** The client's release, from its own file: the class that reads it is in another package since 4.4. */
    private static String version() throws IOException {
        Properties made = new Properties();
        InputStream file = ProducerConfig.class.getResourceAsStream("/kafka/kafka-version.properties");
        try {
            made.load(file);
        } finally {
            file.close();
        }
        return made.getProperty("version").trim();
    }

    void send(Answer answer) throws IOException {
        send(answer.node);
    }

    private void send(ObjectNode message) throws IOException {
        byte[] line = json.writeValueAsBytes(message);
        synchronized (this) {
            answers.write(line);
            answers.write('\n');
            answers.flush();
        }
    }
}
