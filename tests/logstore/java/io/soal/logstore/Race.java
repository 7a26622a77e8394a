package io.soal.logstore;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/** Opens and closes blocks on two threads at the same time; counts the entries that get lost. */
final class Race {
  private static final byte[] DELETE =
      "{\"commitInfo\":{\"operation\":\"DELETE\"}}\n".getBytes(StandardCharsets.UTF_8);
  private static final String TABLE = "s3://lake/table";

  private Race() {}

  static Map<String, Integer> run(int rounds) throws Exception {
    Map<String, AtomicInteger> lost = Map.of(
        "gate not found", new AtomicInteger(), "leftover not known", new AtomicInteger(),
        "two on one session", new AtomicInteger());
    ExecutorService threads = Executors.newFixedThreadPool(2);
    CyclicBarrier together = new CyclicBarrier(2);
    Blocks blocks = new Blocks();
    Set<Long> running = ConcurrentHashMap.newKeySet();
    AtomicInteger owners = new AtomicInteger();
    Object shared = new Object();
    List<Future<?>> done = new ArrayList<>();
    for (int who = 0; who < 2; who++) {
      long me = who;
      done.add(threads.submit(() -> {
        for (int round = 0; round < rounds; round++) {
          together.await();
          Object session = new Object();
          Gate mine = open(blocks, session, running, me, round);
          if (find(blocks, session, Set.of()) != mine) {
            lost.get("gate not found").incrementAndGet();
          }
          long execution = 2L * round + me;
          running.add(execution);
          mine.close(() -> Set.copyOf(running));
          try {
            find(blocks, session, Set.of(execution));
            lost.get("leftover not known").incrementAndGet();
          } catch (Refused over) {
            // expected; the other thread's block refuses, too, while it is open
          }
          together.await();
          try { // now nothing is open
            find(blocks, session, Set.of(execution));
            lost.get("leftover not known").incrementAndGet();
          } catch (Refused over) {
            running.remove(execution);
          }
          together.await();
          Gate common = tryToOpen(blocks, shared, running, me, round);
          if (common != null && owners.incrementAndGet() == 2) {
            lost.get("two on one session").incrementAndGet();
          }
          together.await();
          if (common != null) {
            owners.decrementAndGet();
            common.close(() -> Set.copyOf(running));
          }
        }
        return null;
      }));
    }
    for (Future<?> one : done) {
      one.get();
    }
    threads.shutdown();
    return Map.of(
        "gate not found", lost.get("gate not found").get(), "leftover not known", lost.get("leftover not known").get(),
        "two on one session", lost.get("two on one session").get());
  }

  private static Gate tryToOpen(Blocks blocks, Object session, Set<Long> running, long me, int round) {
    try {
      return open(blocks, session, running, me, round);
    } catch (IllegalStateException busy) {
      return null;
    }
  }

  private static Gate open(Blocks blocks, Object session, Set<Long> running, long me, int round) {
    String prefix = String.format("sw-%032x-%d-%016x-", me, 1, round);
    Block block = new Block(TABLE, "key", 1, 0, 0, "note", "", "nonce", prefix, false, false);
    return Gate.open(blocks, Set.copyOf(running), session, block);
  }

  private static Gate find(Blocks blocks, Object session, Set<Long> executions) throws IOException {
    Statement statement = new Statement(Thread.currentThread(), session, executions);
    return blocks.find(TABLE, DELETE, () -> statement);
  }
}
