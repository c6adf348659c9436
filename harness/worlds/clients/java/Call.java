import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** A call, and its arguments. */
final class Call {
    final String method;
    final int client;
    final long number;
    final JsonNode node;

    Call(JsonNode node) {
        this.node = node;
        method = node.get("method").asText();
        client = node.get("client").asInt();
        number = node.get("call").asLong();
    }

    /** Whether the client's life ends with it. */
    boolean last() {
        return method.equals("close") || method.equals("crash");
    }

    Duration limit() {
        return Duration.ofMillis(node.get("timeout_ms").asLong());
    }

    /** Bytes, or null. */
    static byte[] bytes(JsonNode node) throws IOException {
        return node == null || node.isNull() ? null : node.binaryValue();
    }

    static TopicPartition partition(JsonNode node) {
        return new TopicPartition(node.get("topic").asText(), node.get("partition").asInt());
    }

    List<TopicPartition> partitions() {
        List<TopicPartition> partitions = new ArrayList<TopicPartition>();
        for (Iterator<JsonNode> left = node.get("partitions").elements(); left.hasNext();) {
            partitions.add(partition((JsonNode) left.next()));
        }
        return partitions;
    }

    /** Offsets by log partition; null is its start. */
    Map<TopicPartition, Long> offsets() {
        Map<TopicPartition, Long> offsets = new LinkedHashMap<TopicPartition, Long>();
        for (Iterator<JsonNode> left = node.get("offsets").elements(); left.hasNext();) {
            JsonNode each = (JsonNode) left.next();
            JsonNode offset = each.get("offset");
            boolean given = offset != null && !offset.isNull();
            offsets.put(partition(each), given ? Long.valueOf(offset.asLong()) : null);
        }
        return offsets;
    }

    Map<TopicPartition, OffsetAndMetadata> committing() {
        Map<TopicPartition, OffsetAndMetadata> committing = new LinkedHashMap<TopicPartition, OffsetAndMetadata>();
        for (Map.Entry<TopicPartition, Long> entry : offsets().entrySet()) {
            Long offset = (Long) entry.getValue();
            committing.put((TopicPartition) entry.getKey(), new OffsetAndMetadata(offset.longValue()));
        }
        return committing;
    }

    Map<String, Object> properties() {
        Map<String, Object> properties = new HashMap<String, Object>();
        for (Iterator<String> names = node.get("properties").fieldNames(); names.hasNext();) {
            String name = (String) names.next();
            properties.put(name, node.get("properties").get(name).asText());
        }
        return properties;
    }
}
