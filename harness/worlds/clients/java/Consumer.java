import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
        if (call.method != Call.WAKE_UP) {
            super.take(call);
        } else if (consumer != null) {
            consumer.wakeup();
        }
    }

    boolean perform(Call call, Answer answer) throws Exception {
        switch (call.method) {
            case Call.NEW_CONSUMER:
                consumer = new KafkaConsumer(
                    call.properties(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
                group = new GroupMember(bridge, consumer);
                return true;
            case Call.CLOSE:
                if (consumer != null) {
                    consumer.close(call.milliseconds());
                }
                return true;
            case Call.ASSIGN:
                assign(call);
                return true;
            case Call.POLL:
                write(consumer.poll(call.milliseconds()), answer);
                return true;
            case Call.ENDS:
                ends(call, answer);
                return true;
            default:
                return group.perform(call, answer);
        }
    }

    /** Read from these offsets on; from the start of a log partition where the offset is -1. */
    private void assign(Call call) throws IOException {
        Map<TopicPartition, Long> begins = new LinkedHashMap<TopicPartition, Long>();
        for (int left = call.count(); left > 0; left--) {
            TopicPartition partition = call.partition();
            begins.put(partition, Long.valueOf(call.in.readLong()));
        }
        consumer.assign(begins.keySet());
        for (Map.Entry<TopicPartition, Long> entry : begins.entrySet()) {
            TopicPartition partition = (TopicPartition) entry.getKey();
            long begin = ((Long) entry.getValue()).longValue();
            if (begin >= 0) {
                consumer.seek(partition, begin);
            } else {
                List<TopicPartition> one = new ArrayList<TopicPartition>();
                one.add(partition);
                consumer.seekToBeginning(one);
            }
        }
    }

    private void write(ConsumerRecords records, Answer answer) throws IOException {
        Set<TopicPartition> partitions = records.partitions();
        answer.out.writeInt(partitions.size());
        for (TopicPartition partition : partitions) {
            List<ConsumerRecord> of = records.records(partition);
            answer.partition(partition);
            answer.out.writeInt(of.size());
            for (ConsumerRecord record : of) {
                answer.out.writeLong(record.offset());
                answer.bytes((byte[]) record.key());
                answer.bytes((byte[]) record.value());
                Header header = record.headers().lastHeader(Bridge.HEADER);
                answer.bytes(header == null ? null : header.value());
            }
        }
    }

    /** The ends of all, or one by one where one without a leader spoils the answer for the rest; then the first error. */
    private void ends(Call call, Answer answer) throws IOException {
        Duration limit = call.milliseconds();
        List<TopicPartition> asked = call.partitions();
        Map<TopicPartition, Long> ends = new LinkedHashMap<TopicPartition, Long>();
        Exception first = null;
        try {
            ends.putAll(consumer.endOffsets(asked, limit));
        } catch (Exception error) {
            first = error;
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
        answer.found(ends, first);
    }
}
