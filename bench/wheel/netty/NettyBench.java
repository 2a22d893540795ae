// SPDX-License-Identifier: MIT
//
// Netty's HashedWheelTimer, measured as far as possible. It uses the clock of the machine, and its own thread
// turns the wheel. So this times only the part that the caller pays: newTimeout() and cancel(). Afterwards
// the wheel's thread takes the timeouts out of a queue, files and fires them. That happens on another
// processor and is not counted. The program writes raw results in the format of wheel_bench, which merges
// them.
//
//     java NettyBench ROUNDS QUICK(0|1) > netty-raw.tsv

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.util.Random;
import java.util.concurrent.TimeUnit;

public final class NettyBench {
    /** An object with a timer. It resembles the 64-byte objects of the other engines as far as Java allows. */
    static final class Timed implements TimerTask {
        Timeout timeout;
        long payload;

        @Override
        public void run(Timeout fired) {
            payload++;
        }
    }

    static final int SPREAD_MS = 60000;
    static final int UNIFORM_MS = 1800000;
    static final int CONSTANT_MS = 30000;
    static final int DAY_MS = 86400000;
    static final String[] WORKLOADS = {"add_uniform", "add_constant", "add_lognormal", "cancel_random", "churn"};

    final Random random;
    final Timed[] objects;
    final HashedWheelTimer timer = new HashedWheelTimer(1, TimeUnit.MILLISECONDS, 65536);

    NettyBench(int timers, long seed) {
        random = new Random(seed);
        objects = new Timed[timers];
        for (int i = 0; i < timers; i++)
            objects[i] = new Timed();
        shuffle(objects);
    }

    void shuffle(Timed[] array) {
        for (int i = array.length - 1; i > 0; i--) {
            int j = random.nextInt(i + 1);
            Timed other = array[i];
            array[i] = array[j];
            array[j] = other;
        }
    }

    int delay(String workload) {
        switch (workload) {
            case "add_uniform":
                return 1 + random.nextInt(UNIFORM_MS);
            case "add_constant":
                return CONSTANT_MS;
            case "add_lognormal":
                return (int) Math.max(1, Math.min(DAY_MS, 1000 * Math.exp(2 * random.nextGaussian())));
            default:
                return 1 + random.nextInt(SPREAD_MS);
        }
    }

    int[] delays(String workload, int count) {
        int[] made = new int[count];
        for (int k = 0; k < count; k++)
            made[k] = delay(workload);
        return made;
    }

    void add(Timed object, int delay) {
        object.payload++;
        object.timeout = timer.newTimeout(object, delay, TimeUnit.MILLISECONDS);
    }

    void cancel(Timed object) {
        object.payload++;
        object.timeout.cancel();
    }

    long addAll(int[] delays) {
        long start = System.nanoTime();
        for (int i = 0; i < objects.length; i++)
            add(objects[i], delays[i]);
        return System.nanoTime() - start;
    }

    long cancelAll() {
        shuffle(objects);
        long start = System.nanoTime();
        for (Timed object : objects)
            cancel(object);
        return System.nanoTime() - start;
    }

    long churn(int[] order, int[] delays) {
        long start = System.nanoTime();
        for (int k = 0; k < order.length; k++) {
            Timed object = objects[order[k]];
            cancel(object);
            add(object, delays[k]);
        }
        return System.nanoTime() - start;
    }

    /** The bytes on the heap when collections free nothing more: the threads of stopped timers end late. */
    static long heapBytes() throws InterruptedException {
        long used = Long.MAX_VALUE;
        for (int quiet = 0; quiet < 3;) {
            System.gc();
            System.runFinalization();
            Thread.sleep(50);
            long now = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
            quiet = now < used - used / 1000 ? 0 : quiet + 1;
            used = Math.min(used, now);
        }
        return used;
    }

    /** Repeats add and cancel until enough operations were timed; returns ns per operation. */
    double addsOrCancels(String workload, int ops) {
        long ns = 0;
        int repeats = Math.max(1, ops / objects.length);
        for (int r = 0; r < repeats; r++) {
            long adding = addAll(delays(workload, objects.length));
            long cancelling = cancelAll();
            ns += workload.equals("cancel_random") ? cancelling : adding;
        }
        return (double) ns / repeats / objects.length;
    }

    double churns(int ops) {
        addAll(delays("churn", objects.length));
        int[] order = new int[ops];
        for (int k = 0; k < ops; k++)
            order[k] = random.nextInt(objects.length);
        return (double) churn(order, delays("churn", ops)) / ops;
    }

    /** Bytes per timer. As none was cancelled, all must be pending: a queue that loses timers would be fast. */
    double bytesPerTimer() throws InterruptedException {
        long before = heapBytes();
        addAll(delays("add_uniform", objects.length));
        double bytes = (double) (heapBytes() - before) / objects.length;
        long pending = timer.pendingTimeouts();
        if (pending > objects.length || pending < objects.length * 0.99) // a few timers are due already
            throw new IllegalStateException("netty: " + pending + " pending of " + objects.length);
        timer.stop();
        return bytes;
    }

    static double measure(String workload, int timers, int round, int ops) {
        NettyBench bench = new NettyBench(timers, round + 1);
        bench.timer.start();
        double ns = workload.equals("churn") ? bench.churns(ops) : bench.addsOrCancels(workload, ops);
        bench.timer.stop();
        return ns;
    }

    /** Measured before other loads have littered the heap, and with many timers, so that its noise is small. */
    static double measureBytes(int timers) throws InterruptedException {
        NettyBench bench = new NettyBench(timers, 0);
        bench.timer.start();
        return bench.bytesPerTimer();
    }

    public static void main(String[] words) throws InterruptedException {
        int rounds = Integer.parseInt(words[0]);
        boolean quick = words[1].equals("1");
        int ops = quick ? 200000 : 1000000;
        int[] sizes = quick ? new int[] {1000, 100000} : new int[] {1000, 100000, 1000000};
        double bytes = measureBytes(sizes[sizes.length - 1]);
        for (String workload : WORKLOADS) // so that the compiler has seen everything before the clock runs
            for (int i = 0; i < 3; i++)
                measure(workload, 20000, i, ops);
        System.out.println("workload\tengine\ttimers\tround\tns_per_op\tworst_us\tbytes_per_timer");
        for (int timers : sizes)
            for (int round = 0; round < rounds; round++)
                for (String workload : WORKLOADS)
                    System.out.printf("%s\tnetty\t%d\t%d\t%.3f\t-\t%.1f%n", workload, timers, round,
                        measure(workload, timers, round, ops), bytes);
    }
}
