// SPDX-License-Identifier: Apache-2.0

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;

/**
 * The Java contestant: a Caffeine cache that forgets 24 hours after the write, asked by putIfAbsent,
 * under the protocol of bench/README.md. Before it says hello it runs rounds until the compiler has
 * seen enough of them.
 *
 * CPU time is that of the whole process: Caffeine's maintenance runs on the common pool and the
 * collector on its own threads, and both are part of what a key costs.
 */
public final class CaffeineChecker {
    private static final byte[] DIGITS = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
    private static final com.sun.management.OperatingSystemMXBean SYSTEM =
            (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** splitmix64: the same keys for every contestant that is given the same seed. */
    private static final class Random {
        private long state;

        Random(long seed) {
            state = seed;
        }

        long next() {
            state += 0x9e3779b97f4a7c15L;
            long z = state;
            z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
            z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
            return z ^ (z >>> 31);
        }
    }

    /** The text of key number index: version 4, 36 bytes, lower case. A new object each time. */
    private static String uuid(long seed, long index) {
        Random random = new Random(seed ^ (index * 0xd1342543de82ef95L));
        long high = (random.next() & ~0xf000L) | 0x4000L;
        long low = (random.next() & ~(3L << 62)) | (2L << 62);
        byte[] text = new byte[36];
        int at = 0;
        for (int i = 0; i < 32; i++) {
            if (i == 8 || i == 12 || i == 16 || i == 20) {
                text[at++] = '-';
            }
            long word = i < 16 ? high : low;
            text[at++] = DIGITS[(int) (word >>> (60 - 4 * (i % 16))) & 15];
        }
        return new String(text, StandardCharsets.ISO_8859_1);
    }

    private final int count;

    private CaffeineChecker(int count) {
        this.count = count;
    }

    private String round(long seed) {
        String[] first = new String[count];
        for (int i = 0; i < count; i++) {
            first[i] = uuid(seed, i);
        }
        // The second pass comes in another order and with objects of its own: equal pointers
        // would answer without comparing, and a String keeps the hash that was asked once.
        int[] order = new int[count];
        Random random = new Random(seed + 1);
        for (int i = 0; i < count; i++) {
            int j = (int) Long.remainderUnsigned(random.next(), i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        String[] second = new String[count];
        for (int i = 0; i < count; i++) {
            second[i] = uuid(seed, order[i]);
        }
        order = null;
        Cache<String, Boolean> cache =
                Caffeine.newBuilder().expireAfterWrite(24, TimeUnit.HOURS).build();
        System.gc();
        String fresh = pass("new", cache.asMap(), first, null);
        System.gc();
        String duplicate = pass("dup", cache.asMap(), second, Boolean.TRUE);
        return "{" + fresh + "," + duplicate + "}";
    }

    private String pass(
            String name, ConcurrentMap<String, Boolean> map, String[] keys, Boolean expected) {
        long cpu = SYSTEM.getProcessCpuTime();
        long wall = System.nanoTime();
        for (String key : keys) {
            if (map.putIfAbsent(key, Boolean.TRUE) != expected) {
                throw new IllegalStateException(name + ": wrong answer for " + key);
            }
        }
        wall = System.nanoTime() - wall;
        // What the pass has left for the maintenance thread belongs to the pass.
        ForkJoinPool.commonPool().awaitQuiescence(10, TimeUnit.SECONDS);
        cpu = SYSTEM.getProcessCpuTime() - cpu;
        return String.format(
                "\"%s\":{\"ops\":%d,\"wall_ns\":%d,\"cpu_ns\":%d}", name, keys.length, wall, cpu);
    }

    /** The jar's manifest names no version, but Debian's /usr/share/java/caffeine.jar links to one. */
    private static String version() throws IOException {
        String path = Cache.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        String jar = Path.of(path).toRealPath().getFileName().toString();
        return jar.replaceAll("^caffeine-?|[.]jar$", "");
    }

    public static void main(String[] arguments) throws IOException {
        CaffeineChecker checker = new CaffeineChecker(Integer.parseInt(arguments[0]));
        int warmups = Integer.parseInt(arguments[1]);
        long seed = 1;
        for (int i = 0; i < warmups; i++) {
            checker.round(seed++);
        }
        System.out.printf(
                "{\"contestant\":\"Caffeine\",\"version\":\"%s, Java %s\"}%n",
                version(), System.getProperty("java.version"));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) {
            System.out.println(checker.round(seed++));
        }
    }
}
