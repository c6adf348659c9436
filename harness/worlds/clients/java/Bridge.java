import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;

/**
 * Producers and consumers of Kafka's own client for the harness: calls come on standard input, answers go to standard
 * output. The program ends when its input ends, so it never outlives the harness.
 *
 * <p>A frame is a length (4 bytes) and that many bytes. A call is a method (1 byte), the number of a client (4), the
 * number of the call (8), and arguments. An answer is the number of the call, its end (1 byte), and the result, or the
 * class and the words of an exception. Texts and bytes are a length (4 bytes, -1 for null) and that many bytes.
 *
 * <p>Every client has one thread, which does the client's calls in their order. Janino compiles these files; it knows no
 * lambdas, and takes generic types for comments.
 */
public final class Bridge {
    /** The one header that records may have. */
    static final String HEADER = "ackproof";

    private final DataOutputStream answers;
    private final Map<Integer, Client> clients = new HashMap<Integer, Client>();

    private Bridge(DataOutputStream answers) {
        this.answers = answers;
    }

    public static void main(String[] arguments) {
        FileOutputStream output = new FileOutputStream(FileDescriptor.out);
        System.setOut(System.err); // logs must not come between answers
        try {
            Bridge bridge = new Bridge(new DataOutputStream(new BufferedOutputStream(output, 1 << 16)));
            bridge.serve(new DataInputStream(new BufferedInputStream(System.in, 1 << 16)));
        } catch (java.io.EOFException end) {
            // The harness closed its end, or died.
        } catch (Throwable error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(0);
    }

    private void serve(DataInputStream calls) throws IOException {
        Answer hello = new Answer(0, Answer.DONE);
        hello.text(version());
        hello.defaults(ProducerConfig.configDef());
        hello.defaults(ConsumerConfig.configDef());
        send(hello);
        while (true) {
            byte[] frame = new byte[calls.readInt()];
            calls.readFully(frame);
            Call call = new Call(frame);
            Client client = (Client) clients.get(Integer.valueOf(call.client));
            if (client == null) {
                client = call.method == Call.NEW_PRODUCER ? (Client) new Producer(this) : (Client) new Consumer(this);
                clients.put(Integer.valueOf(call.client), client);
            }
            client.take(call);
            if (call.method == Call.CLOSE) {
                clients.remove(Integer.valueOf(call.client));
            }
        }
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

    synchronized void send(Answer answer) throws IOException {
        answers.writeInt(answer.bytes.size());
        answer.bytes.writeTo(answers);
        answers.flush();
    }

    void fail(long number, int end, Throwable error) throws IOException {
        Answer answer = new Answer(number, end);
        answer.error(error);
        send(answer);
    }
}
