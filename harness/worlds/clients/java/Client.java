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
        if (call.last()) {
            thread.shutdown();
        }
    }

    private void answer(Call call) {
        try {
            Answer answer = Answer.done(call.number);
            boolean answered;
            try {
                answered = perform(call, answer);
            } catch (Throwable error) { // an older release may lack a method
                bridge.send(Answer.failed(call.number, classOf(error), error));
                return;
            }
            if (answered) {
                bridge.send(answer);
            }
        } catch (IOException gone) {
            Runtime.getRuntime().halt(1); // the harness no longer reads
        }
    }

    /** The class of an error that a call raised. */
    String classOf(Throwable error) {
        return Answer.FAILED;
    }

    /** Do the call and write its result; false if the answer is sent later or was sent. */
    abstract boolean perform(Call call, Answer answer) throws Exception;
}
