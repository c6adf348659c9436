import java.time.Duration;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Sends four records, a batch each (they are padded), with Kafka's own client, and prints how each ended: its number, then its offset or its error. */
public class FourRecords {
    public static void main(String[] arguments) {
        Map<String, Object> properties = Map.of(
            "bootstrap.servers", arguments[0],
            "acks", "all",
            "enable.idempotence", true,
            "max.in.flight.requests.per.connection", 5,
            "batch.size", 1,
            "linger.ms", 0,
            "request.timeout.ms", 10_000,
            "delivery.timeout.ms", Integer.parseInt(arguments[2]),
            "key.serializer", "org.apache.kafka.common.serialization.StringSerializer",
            "value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties)) {
            for (int record = 0; record < 4; record++) {
                int number = record;
                producer.send(new ProducerRecord<>(arguments[1], 0, null, number + " ".repeat(400)), (metadata, error) ->
                    System.out.println(number + " " + (error == null ? metadata.offset() : error.getClass().getSimpleName())));
            }
            producer.flush();
            producer.close(Duration.ZERO);
        }
    }
}
