import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
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
            case "new_producer":
                own = Thread.currentThread();
                producer = new KafkaProducer(call.properties(), new ByteArraySerializer(), new ByteArraySerializer());
                transactions = new Transactions(producer);
                return true;
            case "close":
            case "crash":
                if (producer != null) {
                    producer.close(Duration.ZERO);
                }
                return true;
            case "send":
                send(call);
                return false;
            default:
                return transactions.perform(call);
        }
    }

    String classOf(Throwable error) {
        return transactions == null ? Answer.FAILED : transactions.classOf(error);
    }

    private void send(Call call) throws IOException {
        final long number = call.number;
        TopicPartition to = Call.partition(call.node);
        byte[] key = Call.bytes(call.node.get("key"));
        byte[] value = Call.bytes(call.node.get("value"));
        ProducerRecord record = new ProducerRecord(to.topic(), Integer.valueOf(to.partition()), key, value);
        JsonNode headers = call.node.get("headers");
        if (headers != null) {
            record.headers().add(Bridge.HEADER, Call.bytes(headers.get(Bridge.HEADER)));
        }
        // Of a producer with a fatal error send() calls back, and throws too.
        final AtomicBoolean answered = new AtomicBoolean();
        try {
            producer.send(record, new Callback() {
                public void onCompletion(RecordMetadata metadata, Exception error) {
                    if (!answered.getAndSet(true)) {
                        ended(number, metadata, error);
                    }
                }
            });
        } catch (Exception error) {
            if (!answered.getAndSet(true)) {
                bridge.send(Answer.failed(number, Answer.REFUSED, error));
            }
        }
    }

    /** send() itself calls back for a record that it does not take; for one that it took, the sender's thread does. */
    private void ended(long number, RecordMetadata metadata, Exception error) {
        try {
            if (error != null) {
                String told = Thread.currentThread() == own ? Answer.REFUSED : Answer.FAILED;
                bridge.send(Answer.failed(number, told, error));
                return;
            }
            Answer answer = Answer.done(number);
            if (metadata.hasOffset()) {
                answer.node.put("offset", metadata.offset());
            }
            bridge.send(answer);
        } catch (IOException gone) {
            Runtime.getRuntime().halt(1);
        }
    }
}
