import java.io.IOException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;

/** One producer or consumer, and its thread. */
abstract class Client {
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
        if (call.method == Call.CLOSE) {
            thread.shutdown();
        }
    }

    private void answer(Call call) {
        try {
            Answer answer = new Answer(call.number, Answer.DONE);
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
        return Answer.FAILED;
    }

    /** Do the call and write its result; false if the answer is sent later or was sent. */
    abstract boolean perform(Call call, Answer answer) throws Exception;
}
