import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
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
            case "subscribe":
                subscribe(call);
                return true;
            case "commit":
                consumer.commitSync(call.committing(), call.limit());
                return true;
            case "committed":
                committed(call, answer);
                return true;
            case "membership":
                membership(answer.node.putObject("member"));
                return true;
            default:
                throw new IllegalArgumentException("a consumer has no method " + call.method);
        }
    }

    private void subscribe(Call call) {
        final long number = call.number;
        List<String> topics = new ArrayList<String>();
        for (Iterator<JsonNode> left = call.node.get("topics").elements(); left.hasNext();) {
            topics.add(((JsonNode) left.next()).asText());
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
            Answer event = new Answer(number);
            event.node.put("event", "assigned");
            ArrayNode partitions = event.node.putArray("partitions");
            for (TopicPartition partition : left) {
                Answer.put(partitions.addObject(), partition);
            }
            event.node.put("generation", consumer.groupMetadata().generationId());
            bridge.send(event);
        } catch (IOException gone) {
            Runtime.getRuntime().halt(1);
        }
    }

    private void committed(Call call, Answer answer) {
        Map<TopicPartition, OffsetAndMetadata> committed =
            consumer.committed(new LinkedHashSet<TopicPartition>(call.partitions()), call.limit());
        Map<TopicPartition, Long> offsets = new LinkedHashMap<TopicPartition, Long>();
        for (Map.Entry<TopicPartition, OffsetAndMetadata> entry : committed.entrySet()) {
            OffsetAndMetadata offset = (OffsetAndMetadata) entry.getValue();
            if (offset != null) {
                offsets.put((TopicPartition) entry.getKey(), Long.valueOf(offset.offset()));
            }
        }
        answer.offsets(offsets);
    }

    private void membership(ObjectNode told) {
        ConsumerGroupMetadata member = consumer.groupMetadata();
        told.put("group", member.groupId());
        told.put("generation", member.generationId());
        told.put("member", member.memberId());
        told.put("instance", (String) member.groupInstanceId().orElse(null));
    }
}
