package io.soal.host;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.regex.Pattern;

/**
 * Finds the threads of a job that still run after its end.
 *
 * <p>A pool's thread does not count while the pool is idle and its queue empty. Libraries keep some other threads for
 * the life of the JVM; these are matched by name.
 */
final class Threads {
  /**
   * Cleaners and metrics, the timers of the AWS clients' request timeouts, and the sockets of a stopped Spark, which
   * Netty closes two seconds late.
   */
  private static final Pattern KEPT = Pattern.compile(
      "(rpc|shuffle)-(boss|server|client)-.*|globalEventExecutor-.*|Timer for 's3a-file-system' metrics system"
          + "|MutableQuantiles-.*|sdk-ScheduledExecutor-.*|org\\.apache\\.hadoop\\.fs\\.FileSystem\\$Statistics\\$StatisticsDataReferenceCleaner"
          + "|Cleaner-\\d+|idle-connection-reaper|process reaper.*|Log4j2-.*|JNA Cleaner|Finalizer|Attach Listener");

  /** Iceberg's one pool of a JVM, which renews the tokens of its catalogs before they end, each until the JVM's end. */
  private static final String RENEWALS = "auth-session-refresh";

  private final Set<Thread> before;

  private Threads(Set<Thread> before) {
    this.before = before;
  }

  /** Treats the threads that run now as the JVM's own. */
  static Threads atRest() {
    return new Threads(new HashSet<>(Thread.getAllStackTraces().keySet()));
  }

  /** Interrupts Spark's monitors of idle Python workers, which run on after Spark stops. */
  void endMonitors() {
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().startsWith("Idle Worker Monitor for ")) {
        thread.setUncaughtExceptionHandler((ended, interrupted) -> { });
        thread.interrupt();
      }
    }
  }

  /**
   * Drops the renewals of the job's tokens: their catalogs went with the context, and nothing else holds the tokens. One
   * that is under way puts itself into the queue again, so call this at each look.
   */
  void endRenewals() {
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      ThreadPoolExecutor pool = thread.getName().startsWith(RENEWALS) ? poolOf(thread) : null;
      if (pool != null) {
        pool.getQueue().clear();
      }
    }
  }

  /**
   * Lets go of what threads have inherited from those that made them: Spark's session of the job among it, and with that
   * its catalogs and their tokens. Idle threads of pools would keep it, and those that only run when the JVM ends. Call
   * it when nothing runs.
   */
  static void endInheritance() throws ReflectiveOperationException {
    Field inherited = Thread.class.getDeclaredField("inheritableThreadLocals");
    inherited.setAccessible(true);
    Object hooks = Hidden.of(Class.forName("java.lang.ApplicationShutdownHooks"), "hooks");
    Set<Thread> all = new HashSet<>(Thread.getAllStackTraces().keySet());
    ((Map<?, ?>) hooks).keySet().forEach(hook -> all.add((Thread) hook));
    for (Thread thread : all) {
      inherited.set(thread, null);
    }
  }

  /** Returns the names of the job's threads that are busy, or have queued work. */
  List<String> running() {
    List<String> found = new ArrayList<>();
    for (Map.Entry<Thread, StackTraceElement[]> one : Thread.getAllStackTraces().entrySet()) {
      Thread thread = one.getKey();
      if (!before.contains(thread) && thread.isAlive() && !KEPT.matcher(thread.getName()).matches()
          && !isIdle(thread, one.getValue())) {
        found.add(thread.getName());
      }
    }
    return found;
  }

  private static boolean isIdle(Thread thread, StackTraceElement[] stack) {
    if (thread instanceof ForkJoinWorkerThread) {
      ForkJoinPool pool = ((ForkJoinWorkerThread) thread).getPool();
      return pool == null || pool.isQuiescent() && !pool.hasQueuedSubmissions();
    }
    for (StackTraceElement frame : stack) {
      if (frame.getMethodName().equals("getTask") && frame.getClassName().equals(ThreadPoolExecutor.class.getName())) {
        ThreadPoolExecutor pool = poolOf(thread);
        return pool != null && pool.getActiveCount() == 0 && pool.getQueue().isEmpty();
      }
    }
    return false;
  }

  /** Returns a thread's pool, read from private fields, since no public API has it; null if Java hides them. */
  private static ThreadPoolExecutor poolOf(Thread thread) {
    try {
      Field target = Thread.class.getDeclaredField("target");
      target.setAccessible(true);
      Object worker = target.get(thread);
      Field outer = worker.getClass().getDeclaredField("this$0");
      outer.setAccessible(true);
      return (ThreadPoolExecutor) outer.get(worker);
    } catch (ReflectiveOperationException | RuntimeException hidden) {
      return null;
    }
  }
}
