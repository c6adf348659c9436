import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** The membership of one consumer in its group, and what the group has committed. */
final class GroupMember {
    private final Bridge bridge;
    private final KafkaConsumer consumer;

    GroupMember(Bridge bridge, KafkaConsumer consumer) {
        this.bridge = bridge;
        this.consumer = consumer;
    }

    boolean perform(Call call, Answer answer) throws Exception {
        switch (call.method) {
            case Call.SUBSCRIBE:
                subscribe(call);
                return true;
            case Call.COMMIT:
                Duration limit = call.milliseconds();
                consumer.commitSync(call.offsets(), limit);
                return true;
            case Call.COMMITTED:
                committed(call, answer);
                return true;
            case Call.MEMBERSHIP:
                membership(answer);
                return true;
            default:
                throw new IllegalArgumentException("a consumer has no method " + call.method);
        }
    }

    private void subscribe(Call call) throws IOException {
        final long number = call.number;
        List<String> topics = new ArrayList<String>();
        for (int left = call.count(); left > 0; left--) {
            topics.add(call.text());
        }
        consumer.subscribe(topics, new ConsumerRebalanceListener() {
            public void onPartitionsAssigned(Collection<TopicPartition> added) {
                assigned(number, new ArrayList<TopicPartition>());
            }

            public void onPartitionsRevoked(Collection<TopicPartition> removed) {
                assigned(number, removed);
            }

            public void onPartitionsLost(Collection<TopicPartition> removed) {
                assigned(number, removed);
            }
        });
    }

    /** Report what the group leaves to this member; during the call the assignment still has what is removed. */
    private void assigned(long number, Collection<TopicPartition> removed) {
        Set<TopicPartition> left = new LinkedHashSet<TopicPartition>(consumer.assignment());
        left.removeAll(removed);
        try {
            Answer event = new Answer(number, Answer.EVENT);
            event.out.writeInt(left.size());
            for (TopicPartition partition : left) {
                event.partition(partition);
            }
            event.out.writeInt(consumer.groupMetadata().generationId());
            bridge.send(event);
        } catch (IOException gone) {
            Runtime.getRuntime().halt(1);
        }
    }

    private void committed(Call call, Answer answer) throws IOException {
        Duration limit = call.milliseconds();
        Map<TopicPartition, OffsetAndMetadata> committed =
            consumer.committed(new LinkedHashSet<TopicPartition>(call.partitions()), limit);
        Map<TopicPartition, Long> offsets = new LinkedHashMap<TopicPartition, Long>();
        for (Map.Entry<TopicPartition, OffsetAndMetadata> entry : committed.entrySet()) {
            OffsetAndMetadata offset = (OffsetAndMetadata) entry.getValue();
            if (offset != null) {
                offsets.put((TopicPartition) entry.getKey(), Long.valueOf(offset.offset()));
            }
        }
        answer.found(offsets, null);
    }

    private void membership(Answer answer) throws IOException {
        ConsumerGroupMetadata member = consumer.groupMetadata();
        answer.text(member.groupId());
        answer.out.writeInt(member.generationId());
        answer.text(member.memberId());
        answer.text((String) member.groupInstanceId().orElse(null));
    }
}
