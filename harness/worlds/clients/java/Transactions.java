import java.io.IOException;
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
            case Call.INIT_TRANSACTIONS:
                producer.initTransactions();
                return true;
            case Call.BEGIN_TRANSACTION:
                producer.beginTransaction();
                return true;
            case Call.SEND_OFFSETS:
                sendOffsets(call);
                return true;
            case Call.COMMIT_TRANSACTION:
                producer.commitTransaction();
                return true;
            case Call.ABORT_TRANSACTION:
                producer.abortTransaction();
                return true;
            default:
                throw new IllegalArgumentException("a producer has no method " + call.method);
        }
    }

    /** Ask the producer itself first: the class of an exception does not say what became of the transaction. */
    int endOf(Throwable error) {
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

    private void sendOffsets(Call call) throws IOException {
        Map<TopicPartition, OffsetAndMetadata> offsets = call.offsets();
        String group = call.text();
        int generation = call.count();
        String member = call.text();
        producer.sendOffsetsToTransaction(
            offsets, new ConsumerGroupMetadata(group, generation, member, Optional.ofNullable(call.text())));
    }
}
