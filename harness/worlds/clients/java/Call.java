import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** A call, and its arguments that are not yet read. */
final class Call {
    // The methods of a call, as in frames.py.
    static final int NEW_PRODUCER = 1;
    static final int NEW_CONSUMER = 2;
    static final int CLOSE = 3;
    static final int SEND = 10;
    static final int INIT_TRANSACTIONS = 11;
    static final int BEGIN_TRANSACTION = 12;
    static final int SEND_OFFSETS = 13;
    static final int COMMIT_TRANSACTION = 14;
    static final int ABORT_TRANSACTION = 15;
    static final int ASSIGN = 20;
    static final int SUBSCRIBE = 21;
    static final int POLL = 22;
    static final int COMMIT = 24;
    static final int COMMITTED = 25;
    static final int ENDS = 26;
    static final int MEMBERSHIP = 27;
    static final int WAKE_UP = 28;

    final int method;
    final int client;
    final long number;
    final DataInputStream in;

    Call(byte[] frame) throws IOException {
        in = new DataInputStream(new ByteArrayInputStream(frame));
        method = in.readByte();
        client = in.readInt();
        number = in.readLong();
    }

    int count() throws IOException {
        return in.readInt();
    }

    Duration milliseconds() throws IOException {
        return Duration.ofMillis(in.readInt());
    }

    byte[] bytes() throws IOException {
        int length = in.readInt();
        if (length < 0) {
            return null;
        }
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return bytes;
    }

    String text() throws IOException {
        byte[] bytes = bytes();
        return bytes == null ? null : new String(bytes, "UTF-8");
    }

    TopicPartition partition() throws IOException {
        String topic = text();
        return new TopicPartition(topic, in.readInt());
    }

    List<TopicPartition> partitions() throws IOException {
        List<TopicPartition> partitions = new ArrayList<TopicPartition>();
        for (int left = in.readInt(); left > 0; left--) {
            partitions.add(partition());
        }
        return partitions;
    }

    Map<TopicPartition, OffsetAndMetadata> offsets() throws IOException {
        Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<TopicPartition, OffsetAndMetadata>();
        for (int left = in.readInt(); left > 0; left--) {
            TopicPartition partition = partition();
            offsets.put(partition, new OffsetAndMetadata(in.readLong()));
        }
        return offsets;
    }

    Map<String, Object> properties() throws IOException {
        Map<String, Object> properties = new HashMap<String, Object>();
        for (int left = in.readInt(); left > 0; left--) {
            String name = text();
            properties.put(name, text());
        }
        return properties;
    }
}
