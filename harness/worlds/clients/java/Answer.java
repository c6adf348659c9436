import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;

/** An answer that is being written, or an event. */
final class Answer {
    // The classes of errors. A refused record was never taken by the producer.
    static final String REFUSED = "refused";
    static final String FAILED = "failed";
    static final String ABORTABLE = "abortable";
    static final String FATAL = "fatal";
    static final String RETRIABLE = "retriable";

    final ObjectNode node = JsonNodeFactory.instance.objectNode();

    /** An event of this call, or an answer to it that has no end yet. */
    Answer(long call) {
        node.put("call", call);
    }

    static Answer done(long call) {
        Answer answer = new Answer(call);
        answer.node.put("end", "ok");
        return answer;
    }

    static Answer failed(long call, String told, Throwable error) {
        Answer answer = new Answer(call);
        boolean certain = told.equals(REFUSED) || told.equals(ABORTABLE);
        answer.node.put("end", certain ? "fail" : "info");
        answer.node.put("class", told);
        answer.error(error);
        return answer;
    }

    static ObjectNode put(ObjectNode node, TopicPartition partition) {
        node.put("topic", partition.topic());
        node.put("partition", partition.partition());
        return node;
    }

    void offsets(Map<TopicPartition, Long> offsets) {
        ArrayNode list = node.putArray("offsets");
        for (Map.Entry<TopicPartition, Long> entry : offsets.entrySet()) {
            put(list.addObject(), (TopicPartition) entry.getKey()).put("offset", (Long) entry.getValue());
        }
    }

    /** The client's own value of each property, as a text; those without one are left out. */
    static void defaults(ObjectNode node, ConfigDef properties) {
        Map<String, Object> values = properties.defaultValues();
        for (Map.Entry<String, Object> entry : values.entrySet()) {
            if (entry.getValue() != null) {
                node.put((String) entry.getKey(), String.valueOf(entry.getValue()));
            }
        }
    }

    /** The class and the words, and the same of its causes: a general exception often has the telling one inside. */
    void error(Throwable error) {
        StringBuilder words = new StringBuilder(String.valueOf(error.getMessage()));
        Throwable cause = error.getCause();
        for (int depth = 0; cause != null && depth < 3; depth++, cause = cause.getCause()) {
            words.append("; caused by ").append(cause.getClass().getSimpleName());
        }
        node.put("error", error.getClass().getSimpleName());
        node.put("words", words.toString());
    }
}
