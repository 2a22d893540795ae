// SPDX-License-Identifier: MIT
//
// sched_bench (main.c) for Netty's HashedWheelTimer and for the JDK's ScheduledThreadPoolExecutor. For keys it
// uses a ConcurrentHashMap from key to timeout. Its compute() cancels a key's timeout and starts another.
//
//     java SchedBench netty|stpe PENDING PRODUCERS SEED

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

public final class SchedBench {
    static final int OPERATIONS = 2000000;
    static final int WINDOW = 1000;
    static final int PROBES = 1000;
    static final long PROBE_EVERY_NS = 2000000;
    static final long HOUR_NS = 3600_000_000_000L;

    /** A scheduler. add() returns the handle that cancel() takes. */
    interface Peer {
        Object add(Runnable task, long delayNs);

        void cancel(Object handle);

        void close() throws InterruptedException;
    }

    /** Netty with ticks of a millisecond and buckets for a minute, one turn of the wheel: its best here. */
    static final class Netty implements Peer {
        final HashedWheelTimer timer = new HashedWheelTimer(1, TimeUnit.MILLISECONDS, 65536);

        public Object add(Runnable task, long delayNs) {
            return timer.newTimeout(timeout -> task.run(), delayNs, TimeUnit.NANOSECONDS);
        }

        public void cancel(Object handle) {
            ((Timeout) handle).cancel();
        }

        public void close() {
            timer.stop();
        }
    }

    /** The JDK's executor with one thread. It removes cancelled tasks at once, as the other schedulers do. */
    static final class Stpe implements Peer {
        final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);

        Stpe() {
            executor.setRemoveOnCancelPolicy(true);
        }

        public Object add(Runnable task, long delayNs) {
            return executor.schedule(task, delayNs, TimeUnit.NANOSECONDS);
        }

        public void cancel(Object handle) {
            ((Future<?>) handle).cancel(false);
        }

        public void close() throws InterruptedException {
            executor.shutdownNow();
            executor.awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    static final Runnable IGNORE = () -> {};
    static String name;
    static int pending, producers;
    static long seed;
    static boolean silent; // true while the compiler warms up
    static Peer peer;
    static Object[] handles;

    static Peer open() {
        return name.equals("netty") ? new Netty() : new Stpe();
    }

    static void print(String load, String metric, double value) {
        if (!silent)
            System.out.printf("%s\t%s\t%.6g%n", load, metric, value);
    }

    static long cpuNs() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    /** The bytes on the heap when collections no longer free anything. */
    static long heapBytes() throws InterruptedException {
        long used = Long.MAX_VALUE;
        for (int quiet = 0; quiet < 3;) {
            System.gc();
            Thread.sleep(50);
            long now = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
            quiet = now < used - used / 1000 ? 0 : quiet + 1;
            used = Math.min(used, now);
        }
        return used;
    }

    static final class Producer extends Thread {
        final int number, first, count, operations;
        final Consumer<Producer> work;
        final CountDownLatch start;
        long random, begun, ended;

        Producer(int number, int operations, Consumer<Producer> work, CountDownLatch start) {
            this.number = number;
            this.count = pending / producers;
            this.first = count * number;
            this.operations = operations / producers;
            this.work = work;
            this.start = start;
            random = (seed * 64 + number + 1) * 0x9E3779B97F4A7C15L;
        }

        long draw() {
            random ^= random >>> 12;
            random ^= random << 25;
            random ^= random >>> 27;
            return random * 2685821657736338717L;
        }

        long below(long limit) {
            return Long.remainderUnsigned(draw(), limit);
        }

        long far() {
            return HOUR_NS + below(HOUR_NS);
        }

        @Override
        public void run() {
            try {
                start.await();
            } catch (InterruptedException e) {
                return;
            }
            begun = System.nanoTime();
            work.accept(this);
            ended = System.nanoTime();
        }
    }

    static Producer[] begin(Consumer<Producer> work, int operations) {
        CountDownLatch start = new CountDownLatch(1);
        Producer[] all = new Producer[producers];
        for (int i = 0; i < producers; i++) {
            all[i] = new Producer(i, operations, work, start);
            all[i].start();
        }
        start.countDown();
        return all;
    }

    static long join(Producer[] all) throws InterruptedException {
        for (Producer p : all)
            p.join();
        long begun = Arrays.stream(all).mapToLong(p -> p.begun).min().getAsLong();
        return Arrays.stream(all).mapToLong(p -> p.ended).max().getAsLong() - begun;
    }

    static void measure(String load, Consumer<Producer> work, int operations) throws InterruptedException {
        long cpu = cpuNs();
        long wall = join(begin(work, operations));
        print(load, "ns", (double) wall / operations);
        print(load, "cpu_ns", (double) (cpuNs() - cpu) / operations);
    }

    static void addAll(Producer p) {
        for (int i = 0; i < p.count; i++)
            handles[p.first + i] = peer.add(IGNORE, p.far());
    }

    static void again(int job, Producer p) {
        peer.cancel(handles[job]);
        handles[job] = peer.add(IGNORE, p.far());
    }

    static void churnOne(Producer p) {
        again(p.first + (int) p.below(p.count), p);
    }

    static void churn(Producer p) {
        for (int i = 0; i < p.operations; i++)
            churnOne(p);
    }

    static void inFlight(Producer p) {
        int first = pending + p.number * WINDOW;
        for (int i = 0; i < WINDOW; i++)
            handles[first + i] = peer.add(IGNORE, p.far());
        for (int i = 0; i < p.operations; i++)
            again(first + i % WINDOW, p);
        for (int i = 0; i < WINDOW; i++)
            peer.cancel(handles[first + i]);
    }

    static String[] keys;
    static ConcurrentHashMap<String, Object> keyed;

    static void keyAddAll(Producer p) {
        for (int i = 0; i < p.count; i++)
            keyed.put(keys[p.first + i], peer.add(IGNORE, p.far()));
    }

    static void keyMove(Producer p) {
        for (int i = 0; i < p.operations; i++) {
            String key = keys[p.first + (int) p.below(p.count)];
            long delay = p.far();
            keyed.compute(key, (k, handle) -> {
                peer.cancel(handle);
                return peer.add(IGNORE, delay);
            });
        }
    }

    static void probe(String load) throws InterruptedException {
        Producer random = new Producer(0, 0, null, null);
        long[] late = new long[PROBES];
        CountDownLatch left = new CountDownLatch(PROBES);
        long next = System.nanoTime();
        for (int i = 0; i < PROBES; i++) {
            next += PROBE_EVERY_NS;
            for (long rest; (rest = next - System.nanoTime()) > 0;)
                LockSupport.parkNanos(rest);
            int probe = i;
            long delay = 5000000 + random.below(95000000);
            long due = System.nanoTime() + delay;
            peer.add(() -> {
                late[probe] = System.nanoTime() - due;
                left.countDown();
            }, delay);
        }
        awaitAll(left);
        Arrays.sort(late);
        if (late[0] < 0) {
            System.err.println(name + ": a task ran " + -late[0] + " ns early");
            if (!silent)
                early = true;
        }
        print(load, "p50_us", late[PROBES / 2] / 1000.0);
        print(load, "p99_us", late[PROBES * 99 / 100] / 1000.0);
        print(load, "max_us", late[PROBES - 1] / 1000.0);
    }

    static boolean early;
    static volatile boolean enough;

    static void probeUnderLoad() throws InterruptedException {
        enough = false;
        Producer[] all = begin(p -> {
            while (!enough)
                churnOne(p);
        }, 0);
        probe("load");
        enough = true;
        join(all);
    }

    /** Waits a minute at most. */
    static void awaitAll(CountDownLatch left) throws InterruptedException {
        if (left.await(60, TimeUnit.SECONDS))
            return;
        System.err.println(name + ": not all tasks ran within a minute");
        System.exit(1);
    }

    static void firing() throws InterruptedException {
        peer = open();
        AtomicLong seen = new AtomicLong();
        long[] times = new long[2];
        CountDownLatch done = new CountDownLatch(1);
        Runnable callback = () -> {
            long before = seen.getAndIncrement();
            if (before == 0)
                times[0] = System.nanoTime();
            if (before + 1 == pending) {
                times[1] = System.nanoTime();
                done.countDown();
            }
        };
        long target = System.nanoTime() + 500000000L + pending * 2500L;
        join(begin(p -> {
            for (int i = 0; i < p.count; i++) {
                long due = target + p.below(pending * 10L), now = System.nanoTime();
                if (now >= target) {
                    System.err.println(name + ": adding took too long for the firing load");
                    System.exit(1);
                }
                handles[p.first + i] = peer.add(callback, due - now);
            }
        }, pending));
        long cpu = cpuNs();
        awaitAll(done);
        print("firing", "ns", (double) (times[1] - times[0]) / pending);
        print("firing", "cpu_ns", (double) (cpuNs() - cpu) / pending);
        peer.close();
    }

    static void withoutKeys() throws InterruptedException {
        peer = open();
        handles = new Object[pending + producers * WINDOW];
        measure("add", SchedBench::addAll, pending);
        measure("churn", SchedBench::churn, OPERATIONS);
        measure("in_flight", SchedBench::inFlight, OPERATIONS);
        if (!silent) {
            probe("idle");
            probeUnderLoad();
        }
        peer.close();
        handles = null;
    }

    static void withKeys() throws InterruptedException {
        peer = open();
        keys = new String[pending];
        for (int i = 0; i < pending; i++)
            keys[i] = String.format("order:%010d", i);
        keyed = new ConcurrentHashMap<>();
        measure("key_add", SchedBench::keyAddAll, pending);
        measure("key_move", SchedBench::keyMove, OPERATIONS);
        keyed = null;
        keys = null;
        peer.close();
    }

    /** Measured before other loads have littered the heap. */
    static void memory() throws InterruptedException {
        peer = open();
        handles = new Object[pending + producers * WINDOW];
        long before = heapBytes();
        join(begin(SchedBench::addAll, pending));
        print("memory", "bytes", (double) (heapBytes() - before) / pending);
        peer.close();
        handles = null;
    }

    static void all() throws InterruptedException {
        withoutKeys();
        withKeys();
        handles = new Object[pending];
        firing();
        handles = null;
    }

    static int number(String what, String word, int most) {
        try {
            int value = Integer.parseInt(word);
            if (value >= 1 && value <= most)
                return value;
        } catch (NumberFormatException e) {
            // the message follows below
        }
        System.err.println("SchedBench: " + what + " is '" + word + "': expected 1 to " + most);
        System.exit(2);
        return 0;
    }

    public static void main(String[] words) throws InterruptedException {
        if (words.length != 4 || !(words[0].equals("netty") || words[0].equals("stpe"))) {
            System.err.println("usage: SchedBench netty|stpe PENDING PRODUCERS SEED");
            System.exit(2);
        }
        name = words[0];
        producers = number("PRODUCERS", words[2], 64);
        int wanted = number("PENDING", words[1], 10000000) / producers * producers;
        seed = number("SEED", words[3], 1000000);
        if (wanted == 0) {
            System.err.println("SchedBench: fewer tasks than producers");
            System.exit(2);
        }
        pending = wanted;
        memory();
        silent = true; // all loads once with fewer tasks, to warm up the compiler
        pending = 50000 / producers * producers;
        all();
        silent = false;
        pending = wanted;
        all();
        System.exit(early ? 1 : 0);
    }
}
