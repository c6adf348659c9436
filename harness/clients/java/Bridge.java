import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Producers and consumers of Kafka's own client for the harness: calls come on standard input, answers go to standard
 * output. The program ends when its input ends, so it never outlives the harness.
 *
 * <p>A frame is a length (4 bytes) and that many bytes. A call is a method (1 byte), the number of a client (4), the
 * number of the call (8), and arguments. An answer is the number of the call, its end (1 byte), and the result, or the
 * class and the words of an exception. Texts and bytes are a length (4 bytes, -1 for null) and that many bytes.
 *
 * <p>Every client has one thread, which does the client's calls in their order. Janino compiles this file; it knows no
 * lambdas, and takes generic types for comments.
 */
public final class Bridge {
    // The methods of a call, as in bridge.py.
    private static final int NEW_PRODUCER = 1;
    private static final int NEW_CONSUMER = 2;
    private static final int CLOSE = 3;
    private static final int SEND = 10;
    private static final int INIT_TRANSACTIONS = 11;
    private static final int BEGIN_TRANSACTION = 12;
    private static final int SEND_OFFSETS = 13;
    private static final int COMMIT_TRANSACTION = 14;
    private static final int ABORT_TRANSACTION = 15;
    private static final int ASSIGN = 20;
    private static final int SUBSCRIBE = 21;
    private static final int POLL = 22;
    private static final int POSITIONS = 23;
    private static final int COMMIT = 24;
    private static final int COMMITTED = 25;
    private static final int ENDS = 26;
    private static final int MEMBERSHIP = 27;
    private static final int WAKE_UP = 28;

    // The ends of a call. A refused record was never taken by the producer, and an abortable error ends a transaction
    // that was not committed. A call may have events before its end, and after it.
    private static final int DONE = 0;
    private static final int FAILED = 1;
    private static final int REFUSED = 2;
    private static final int EVENT = 3;
    private static final int ABORTABLE = 4;

    /** The one header that records may have. */
    private static final String HEADER = "ackproof";

    private final DataOutputStream answers;
    private final Map<Integer, Client> clients = new HashMap<Integer, Client>();

    private Bridge(DataOutputStream answers) {
        this.answers = answers;
    }

    public static void main(String[] arguments) {
        FileOutputStream output = new FileOutputStream(FileDescriptor.out);
        System.setOut(System.err); // logs must not come between answers
        try {
            Bridge bridge = new Bridge(new DataOutputStream(new BufferedOutputStream(output, 1 << 16)));
            bridge.serve(new DataInputStream(new BufferedInputStream(System.in, 1 << 16)));
        } catch (java.io.EOFException end) {
            // The harness closed its end, or died.
        } catch (Throwable error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(0);
    }

    private void serve(DataInputStream calls) throws IOException {
        Answer hello = new Answer(0, DONE);
        hello.text(AppInfoParser.getVersion());
        hello.defaults(ProducerConfig.configDef());
        hello.defaults(ConsumerConfig.configDef());
        send(hello);
        while (true) {
            byte[] frame = new byte[calls.readInt()];
            calls.readFully(frame);
            Call call = new Call(frame);
            Client client = (Client) clients.get(Integer.valueOf(call.client));
            if (client == null) {
                client = call.method == NEW_PRODUCER ? (Client) new Producer(this) : (Client) new Consumer(this);
                clients.put(Integer.valueOf(call.client), client);
            }
            client.take(call);
            if (call.method == CLOSE) {
                clients.remove(Integer.valueOf(call.client));
            }
        }
    }

    private synchronized void send(Answer answer) throws IOException {
        answers.writeInt(answer.bytes.size());
        answer.bytes.writeTo(answers);
        answers.flush();
    }

    private void fail(long number, int end, Throwable error) throws IOException {
        Answer answer = new Answer(number, end);
        answer.error(error);
        send(answer);
    }

    /** A call, and its arguments that are not yet read. */
    private static final class Call {
        final int method;
        final int client;
        final long number;
        private final DataInputStream in;

        Call(byte[] frame) throws IOException {
            in = new DataInputStream(new ByteArrayInputStream(frame));
            method = in.readByte();
            client = in.readInt();
            number = in.readLong();
        }

        int count() throws IOException {
            return in.readInt();
        }

        Duration milliseconds() throws IOException {
            return Duration.ofMillis(in.readInt());
        }

        byte[] bytes() throws IOException {
            int length = in.readInt();
            if (length < 0) {
                return null;
            }
            byte[] bytes = new byte[length];
            in.readFully(bytes);
            return bytes;
        }

        String text() throws IOException {
            byte[] bytes = bytes();
            return bytes == null ? null : new String(bytes, "UTF-8");
        }

        TopicPartition partition() throws IOException {
            String topic = text();
            return new TopicPartition(topic, in.readInt());
        }

        List<TopicPartition> partitions() throws IOException {
            List<TopicPartition> partitions = new ArrayList<TopicPartition>();
            for (int left = in.readInt(); left > 0; left--) {
                partitions.add(partition());
            }
            return partitions;
        }

        Map<TopicPartition, OffsetAndMetadata> offsets() throws IOException {
            Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<TopicPartition, OffsetAndMetadata>();
            for (int left = in.readInt(); left > 0; left--) {
                TopicPartition partition = partition();
                offsets.put(partition, new OffsetAndMetadata(in.readLong()));
            }
            return offsets;
        }

        Map<String, Object> properties() throws IOException {
            Map<String, Object> properties = new HashMap<String, Object>();
            for (int left = in.readInt(); left > 0; left--) {
                String name = text();
                properties.put(name, text());
            }
            return properties;
        }
    }

    /** An answer that is being written. */
    private static final class Answer {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream(64);
        final DataOutputStream out = new DataOutputStream(bytes);

        Answer(long number, int end) throws IOException {
            out.writeLong(number);
            out.writeByte(end);
        }

        void bytes(byte[] value) throws IOException {
            out.writeInt(value == null ? -1 : value.length);
            if (value != null) {
                out.write(value);
            }
        }

        void text(String value) throws IOException {
            bytes(value == null ? null : value.getBytes("UTF-8"));
        }

        void partition(TopicPartition partition) throws IOException {
            text(partition.topic());
            out.writeInt(partition.partition());
        }

        void offsets(Map<TopicPartition, Long> offsets) throws IOException {
            out.writeInt(offsets.size());
            for (Map.Entry<TopicPartition, Long> entry : offsets.entrySet()) {
                partition((TopicPartition) entry.getKey());
                out.writeLong(((Long) entry.getValue()).longValue());
            }
        }

        /** The client's own value of each property, as a text; null where it has none. */
        void defaults(ConfigDef properties) throws IOException {
            Map<String, Object> values = properties.defaultValues();
            out.writeInt(values.size());
            for (Map.Entry<String, Object> entry : values.entrySet()) {
                text((String) entry.getKey());
                text(entry.getValue() == null ? null : String.valueOf(entry.getValue()));
            }
        }

        /** The class and the words, and the same of its causes: a general exception often has the telling one inside. */
        void error(Throwable error) throws IOException {
            StringBuilder words = new StringBuilder(String.valueOf(error.getMessage()));
            Throwable cause = error.getCause();
            for (int depth = 0; cause != null && depth < 3; depth++, cause = cause.getCause()) {
                words.append("; caused by ").append(cause.getClass().getSimpleName());
            }
            text(error.getClass().getSimpleName());
            text(words.toString());
        }
    }

    /** One producer or consumer, and its thread. */
    private abstract static class Client {
        final Bridge bridge;
        private final ExecutorService thread;

        Client(Bridge bridge, final String name) {
            this.bridge = bridge;
            this.thread = Executors.newSingleThreadExecutor(new ThreadFactory() {
                public Thread newThread(Runnable work) {
                    Thread thread = new Thread(work, name);
                    thread.setDaemon(true);
                    return thread;
                }
            });
        }

        /** Have the client's thread do the call. */
        void take(final Call call) throws IOException {
            thread.execute(new Runnable() {
                public void run() {
                    answer(call);
                }
            });
            if (call.method == CLOSE) {
                thread.shutdown();
            }
        }

        private void answer(Call call) {
            try {
                Answer answer = new Answer(call.number, DONE);
                boolean answered;
                try {
                    answered = perform(call, answer);
                } catch (Throwable error) { // an older release may lack a method
                    bridge.fail(call.number, endOf(error), error);
                    return;
                }
                if (answered) {
                    bridge.send(answer);
                }
            } catch (IOException gone) {
                Runtime.getRuntime().halt(1); // the harness no longer reads
            }
        }

        /** How a call ended that raised an exception. */
        int endOf(Throwable error) {
            return FAILED;
        }

        /** Do the call and write its result; false if the answer is sent later or was sent. */
        abstract boolean perform(Call call, Answer answer) throws Exception;
    }

    private static final class Producer extends Client {
        private KafkaProducer producer;
        private Thread own;

        Producer(Bridge bridge) {
            super(bridge, "producer");
        }

        boolean perform(Call call, Answer answer) throws Exception {
            switch (call.method) {
                case NEW_PRODUCER:
                    own = Thread.currentThread();
                    producer = new KafkaProducer(call.properties(), new ByteArraySerializer(), new ByteArraySerializer());
                    return true;
                case CLOSE:
                    if (producer != null) {
                        producer.close(Duration.ZERO);
                    }
                    return true;
                case SEND:
                    send(call);
                    return false;
                case INIT_TRANSACTIONS:
                    producer.initTransactions();
                    return true;
                case BEGIN_TRANSACTION:
                    producer.beginTransaction();
                    return true;
                case SEND_OFFSETS:
                    sendOffsets(call);
                    return true;
                case COMMIT_TRANSACTION:
                    producer.commitTransaction();
                    return true;
                case ABORT_TRANSACTION:
                    producer.abortTransaction();
                    return true;
                default:
                    throw new IllegalArgumentException("a producer has no method " + call.method);
            }
        }

        /** Ask the producer itself whether it wants an abort: the class of an exception does not say. */
        int endOf(Throwable error) {
            try {
                Field field = KafkaProducer.class.getDeclaredField("transactionManager");
                field.setAccessible(true);
                Object manager = field.get(producer);
                Method asked = manager.getClass().getDeclaredMethod("hasAbortableError", new Class[0]);
                asked.setAccessible(true);
                return ((Boolean) asked.invoke(manager, new Object[0])).booleanValue() ? ABORTABLE : FAILED;
            } catch (Exception unknown) {
                return FAILED; // no transactions, or another release
            }
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
                record.headers().add(HEADER, header);
            }
            try {
                producer.send(record, new Callback() {
                    public void onCompletion(RecordMetadata metadata, Exception error) {
                        ended(number, metadata, error);
                    }
                });
            } catch (Exception error) {
                bridge.fail(number, REFUSED, error);
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

        /** send() itself calls back for a record that it does not take; for one that it took, the sender's thread does. */
        private void ended(long number, RecordMetadata metadata, Exception error) {
            try {
                if (error != null) {
                    bridge.fail(number, Thread.currentThread() == own ? REFUSED : FAILED, error);
                    return;
                }
                Answer answer = new Answer(number, DONE);
                answer.out.writeLong(metadata.hasOffset() ? metadata.offset() : -1L);
                bridge.send(answer);
            } catch (IOException gone) {
                Runtime.getRuntime().halt(1);
            }
        }
    }

    private static final class Consumer extends Client {
        private volatile KafkaConsumer consumer;

        Consumer(Bridge bridge) {
            super(bridge, "consumer");
        }

        /** Wake the consumer up at once; its thread does all other calls. */
        void take(Call call) throws IOException {
            if (call.method != WAKE_UP) {
                super.take(call);
            } else if (consumer != null) {
                consumer.wakeup();
            }
        }

        boolean perform(Call call, Answer answer) throws Exception {
            switch (call.method) {
                case NEW_CONSUMER:
                    consumer = new KafkaConsumer(
                        call.properties(), new ByteArrayDeserializer(), new ByteArrayDeserializer());
                    return true;
                case CLOSE:
                    if (consumer != null) {
                        consumer.close(call.milliseconds());
                    }
                    return true;
                case ASSIGN:
                    assign(call);
                    return true;
                case SUBSCRIBE:
                    subscribe(call);
                    return true;
                case POLL:
                    write(consumer.poll(call.milliseconds()), answer);
                    return true;
                case POSITIONS:
                    positions(call, answer);
                    return true;
                case COMMIT:
                    Duration limit = call.milliseconds();
                    consumer.commitSync(call.offsets(), limit);
                    return true;
                case COMMITTED:
                    committed(call, answer);
                    return true;
                case ENDS:
                    ends(call, answer);
                    return true;
                case MEMBERSHIP:
                    membership(answer);
                    return true;
                default:
                    throw new IllegalArgumentException("a consumer has no method " + call.method);
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
                Answer event = new Answer(number, EVENT);
                event.out.writeInt(left.size());
                for (TopicPartition partition : left) {
                    event.partition(partition);
                }
                bridge.send(event);
            } catch (IOException gone) {
                Runtime.getRuntime().halt(1);
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
                    Header header = record.headers().lastHeader(HEADER);
                    answer.bytes(header == null ? null : header.value());
                }
            }
        }

        /** The positions in these partitions, in all of the assignment if there are none; then the first error. */
        private void positions(Call call, Answer answer) throws IOException {
            Duration limit = call.milliseconds();
            Collection<TopicPartition> asked = call.partitions();
            if (asked.isEmpty()) {
                asked = consumer.assignment();
            }
            Map<TopicPartition, Long> positions = new LinkedHashMap<TopicPartition, Long>();
            Exception first = null;
            for (TopicPartition partition : asked) {
                try {
                    positions.put(partition, Long.valueOf(consumer.position(partition, limit)));
                } catch (Exception error) {
                    first = first == null ? error : first;
                }
            }
            found(positions, first, answer);
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
            found(offsets, null, answer);
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
            found(ends, first, answer);
        }

        private static void found(Map<TopicPartition, Long> offsets, Exception error, Answer answer) throws IOException {
            answer.offsets(offsets);
            answer.out.writeInt(error == null ? 0 : 1);
            if (error != null) {
                answer.error(error);
            }
        }

        private void membership(Answer answer) throws IOException {
            ConsumerGroupMetadata member = consumer.groupMetadata();
            answer.text(member.groupId());
            answer.out.writeInt(member.generationId());
            answer.text(member.memberId());
            answer.text((String) member.groupInstanceId().orElse(null));
        }
    }
}
