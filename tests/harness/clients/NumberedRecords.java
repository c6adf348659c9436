import java.util.HashMap;
import java.util.Map;
import java.util.Scanner;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Sends numbered records, a batch each (they are padded), with Kafka's own client: as many more as each line of input says.
 * Prints how each ended: its number, then its offset or its error.
 */
public class NumberedRecords {
    public static void main(String[] arguments) {
        Map<String, Object> properties = new HashMap<>(Map.of(
            "bootstrap.servers", arguments[0],
            "acks", "all",
            "enable.idempotence", true,
            "max.in.flight.requests.per.connection", 5,
            "batch.size", 1,
            "linger.ms", 0,
            "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer", "org.apache.kafka.common.serialization.StringSerializer"));
        properties.put("request.timeout.ms", Integer.parseInt(arguments[2]));
        properties.put("delivery.timeout.ms", Integer.parseInt(arguments[3]));
        properties.put("metadata.max.age.ms", Integer.parseInt(arguments[4]));
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties); Scanner input = new Scanner(System.in)) {
            int sent = 0;
            while (input.hasNextInt()) {
                for (int end = sent + input.nextInt(); sent < end; sent++) {
                    int number = sent;
                    producer.send(new ProducerRecord<>(arguments[1], 0, null, number + " ".repeat(400)), (metadata, error) ->
                        System.out.println(number + " " + (error == null ? metadata.offset() : error.getClass().getSimpleName())));
                }
            }
        }
    }
}
