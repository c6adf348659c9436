import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads of one consumer; its membership in a group is another class. */
final class Consumer extends Client {
    private volatile KafkaConsumer consumer;
    private GroupMember group;

    Consumer(Bridge bridge) {
        super(bridge, "consumer");
    }

    /** Wake the consumer up at once; its thread does all other calls. */
    void take(Call call) throws IOException {
        if (!call.method.equals("wake_up")) {
            super.take(call);
        } else if (consumer != null) {
            consumer.wakeup();
        }
    }

    boolean perform(Call call, Answer answer) throws Exception {
        switch (call.method) {
            case "new_consumer":
                consumer = new KafkaConsumer(
                    call.properties(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
                group = new GroupMember(bridge, consumer);
                return true;
            case "close":
            case "crash":
                if (consumer != null) {
                    consumer.close(call.limit());
                }
                return true;
            case "assign":
                assign(call.offsets());
                return true;
            case "poll":
                write(consumer.poll(call.limit()), answer.node.putArray("records"));
                return true;
            case "ends":
                ends(call, answer);
                return true;
            default:
                return group.perform(call, answer);
        }
    }

    /** Read from these offsets on; from the start of a log partition where the offset is null. */
    private void assign(Map<TopicPartition, Long> begins) {
        consumer.assign(begins.keySet());
        for (Map.Entry<TopicPartition, Long> entry : begins.entrySet()) {
            TopicPartition partition = (TopicPartition) entry.getKey();
            Long begin = (Long) entry.getValue();
            if (begin != null) {
                consumer.seek(partition, begin.longValue());
            } else {
                List<TopicPartition> one = new ArrayList<TopicPartition>();
                one.add(partition);
                consumer.seekToBeginning(one);
            }
        }
    }

    private void write(ConsumerRecords records, ArrayNode list) {
        for (TopicPartition partition : (Iterable<TopicPartition>) records.partitions()) {
            List<ConsumerRecord> of = records.records(partition);
            for (ConsumerRecord record : of) {
                ObjectNode written = Answer.put(list.addObject(), partition).put("offset", record.offset());
                if (record.key() != null) {
                    written.put("key", (byte[]) record.key());
                }
                if (record.value() != null) {
                    written.put("value", (byte[]) record.value());
                }
                Header header = record.headers().lastHeader(Bridge.HEADER);
                if (header != null) {
                    written.putObject("headers").put(Bridge.HEADER, header.value());
                }
            }
        }
    }

    /** The ends of all, or one by one where one without a leader spoils the answer for the rest; then the first error. */
    private void ends(Call call, Answer answer) {
        Duration limit = call.limit();
        List<TopicPartition> asked = call.partitions();
        Map<TopicPartition, Long> ends = new LinkedHashMap<TopicPartition, Long>();
        try {
            ends.putAll(consumer.endOffsets(asked, limit));
        } catch (Exception error) {
            answer.error(error);
            for (TopicPartition partition : asked) {
                List<TopicPartition> one = new ArrayList<TopicPartition>();
                one.add(partition);
                try {
                    ends.putAll(consumer.endOffsets(one, limit));
                } catch (Exception again) {
                    continue;
                }
            }
        }
        answer.offsets(ends);
    }
}
