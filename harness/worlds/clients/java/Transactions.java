import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;

/** The transactions of one producer. */
final class Transactions {
    private final KafkaProducer producer;

    Transactions(KafkaProducer producer) {
        this.producer = producer;
    }

    boolean perform(Call call) throws Exception {
        switch (call.method) {
            case "init_transactions":
                producer.initTransactions();
                return true;
            case "begin_transaction":
                producer.beginTransaction();
                return true;
            case "send_offsets":
                sendOffsets(call);
                return true;
            case "commit_transaction":
                producer.commitTransaction();
                return true;
            case "abort_transaction":
                producer.abortTransaction();
                return true;
            default:
                throw new IllegalArgumentException("a producer has no method " + call.method);
        }
    }

    /** Ask the producer itself first: the class of an exception does not say what became of the transaction. */
    String classOf(Throwable error) {
        if (isIn("hasFatalError")) {
            return Answer.FATAL;
        }
        if (isIn("hasAbortableError")) {
            return Answer.ABORTABLE;
        }
        return error instanceof RetriableException ? Answer.RETRIABLE : Answer.FAILED;
    }

    private boolean isIn(String state) {
        try {
            Field field = KafkaProducer.class.getDeclaredField("transactionManager");
            field.setAccessible(true);
            Object manager = field.get(producer);
            Method asked = manager.getClass().getDeclaredMethod(state, new Class[0]);
            asked.setAccessible(true);
            return ((Boolean) asked.invoke(manager, new Object[0])).booleanValue();
        } catch (Exception unknown) {
            return false; // no transactions, or another release
        }
    }

    private void sendOffsets(Call call) {
        JsonNode member = call.node.get("member");
        JsonNode instance = member.get("instance");
        String name = instance == null || instance.isNull() ? null : instance.asText();
        producer.sendOffsetsToTransaction(
            call.committing(),
            new ConsumerGroupMetadata(
                member.get("group").asText(),
                member.get("generation").asInt(),
                member.get("member").asText(),
                Optional.ofNullable(name)));
    }
}
