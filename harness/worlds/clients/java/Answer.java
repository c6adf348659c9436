import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;

/** An answer that is being written. */
final class Answer {
    // The ends of a call, as in frames.py. A refused record was never taken by the producer. The last three are classes
    // of errors of transactional calls. A call may have events before its end, and after it.
    static final int DONE = 0;
    static final int FAILED = 1;
    static final int REFUSED = 2;
    static final int EVENT = 3;
    static final int ABORTABLE = 4;
    static final int FATAL = 5;
    static final int RETRIABLE = 6;

    final ByteArrayOutputStream bytes = new ByteArrayOutputStream(64);
    final DataOutputStream out = new DataOutputStream(bytes);

    Answer(long number, int end) throws IOException {
        out.writeLong(number);
        out.writeByte(end);
    }

    void bytes(byte[] value) throws IOException {
        out.writeInt(value == null ? -1 : value.length);
        if (value != null) {
            out.write(value);
        }
    }

    void text(String value) throws IOException {
        bytes(value == null ? null : value.getBytes("UTF-8"));
    }

    void partition(TopicPartition partition) throws IOException {
        text(partition.topic());
        out.writeInt(partition.partition());
    }

    void offsets(Map<TopicPartition, Long> offsets) throws IOException {
        out.writeInt(offsets.size());
        for (Map.Entry<TopicPartition, Long> entry : offsets.entrySet()) {
            partition((TopicPartition) entry.getKey());
            out.writeLong(((Long) entry.getValue()).longValue());
        }
    }

    /** These offsets, and the first error of those that are missing, or null. */
    void found(Map<TopicPartition, Long> offsets, Exception error) throws IOException {
        offsets(offsets);
        out.writeInt(error == null ? 0 : 1);
        if (error != null) {
            error(error);
        }
    }

    /** The client's own value of each property, as a text; null where it has none. */
    void defaults(ConfigDef properties) throws IOException {
        Map<String, Object> values = properties.defaultValues();
        out.writeInt(values.size());
        for (Map.Entry<String, Object> entry : values.entrySet()) {
            text((String) entry.getKey());
            text(entry.getValue() == null ? null : String.valueOf(entry.getValue()));
        }
    }

    /** The class and the words, and the same of its causes: a general exception often has the telling one inside. */
    void error(Throwable error) throws IOException {
        StringBuilder words = new StringBuilder(String.valueOf(error.getMessage()));
        Throwable cause = error.getCause();
        for (int depth = 0; cause != null && depth < 3; depth++, cause = cause.getCause()) {
            words.append("; caused by ").append(cause.getClass().getSimpleName());
        }
        text(error.getClass().getSimpleName());
        text(words.toString());
    }
}
