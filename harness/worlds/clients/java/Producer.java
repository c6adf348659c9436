import java.io.IOException;
import java.time.Duration;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends of one producer; its transactions are another class. */
final class Producer extends Client {
    private KafkaProducer producer;
    private Transactions transactions;
    private Thread own;

    Producer(Bridge bridge) {
        super(bridge, "producer");
    }

    boolean perform(Call call, Answer answer) throws Exception {
        switch (call.method) {
            case Call.NEW_PRODUCER:
                own = Thread.currentThread();
                producer = new KafkaProducer(call.properties(), new ByteArraySerializer(), new ByteArraySerializer());
                transactions = new Transactions(producer);
                return true;
            case Call.CLOSE:
                if (producer != null) {
                    producer.close(Duration.ZERO);
                }
                return true;
            case Call.SEND:
                send(call);
                return false;
            default:
                return transactions.perform(call);
        }
    }

    int endOf(Throwable error) {
        return transactions == null ? Answer.FAILED : transactions.endOf(error);
    }

    private void send(Call call) throws IOException {
        final long number = call.number;
        TopicPartition to = call.partition();
        Integer partition = Integer.valueOf(to.partition());
        byte[] key = call.bytes();
        byte[] value = call.bytes();
        byte[] header = call.bytes();
        ProducerRecord record = new ProducerRecord(to.topic(), partition, key, value);
        if (header != null) {
            record.headers().add(Bridge.HEADER, header);
        }
        try {
            producer.send(record, new Callback() {
                public void onCompletion(RecordMetadata metadata, Exception error) {
                    ended(number, metadata, error);
                }
            });
        } catch (Exception error) {
            bridge.fail(number, Answer.REFUSED, error);
        }
    }

    /** send() itself calls back for a record that it does not take; for one that it took, the sender's thread does. */
    private void ended(long number, RecordMetadata metadata, Exception error) {
        try {
            if (error != null) {
                bridge.fail(number, Thread.currentThread() == own ? Answer.REFUSED : Answer.FAILED, error);
                return;
            }
            Answer answer = new Answer(number, Answer.DONE);
            answer.out.writeLong(metadata.hasOffset() ? metadata.offset() : -1L);
            bridge.send(answer);
        } catch (IOException gone) {
            Runtime.getRuntime().halt(1);
        }
    }
}
