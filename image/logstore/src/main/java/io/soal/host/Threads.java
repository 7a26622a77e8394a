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
 * Tells which threads of a job still run after its end.
 *
 * <p>A thread of a pool counts as none while the pool has nothing to do, now or later. Libraries keep some threads of
 * other kinds for the life of the JVM: those are known by name.
 */
final class Threads {
  /**
   * Threads that clean up after others, or measure; those that end requests of AWS's clients which take too long; and the
   * sockets of a Spark that has stopped, which Netty closes two seconds late.
   */
  private static final Pattern KEPT = Pattern.compile(
      "(rpc|shuffle)-(boss|server|client)-.*|globalEventExecutor-.*|Timer for 's3a-file-system' metrics system"
          + "|MutableQuantiles-.*|sdk-ScheduledExecutor-.*|org\\.apache\\.hadoop\\.fs\\.FileSystem\\$Statistics\\$StatisticsDataReferenceCleaner"
          + "|Cleaner-\\d+|idle-connection-reaper|process reaper.*|Log4j2-.*|JNA Cleaner|Finalizer|Attach Listener");

  private final Set<Thread> before;

  private Threads(Set<Thread> before) {
    this.before = before;
  }

  /** Takes the threads that run now for those of the JVM itself. */
  static Threads atRest() {
    return new Threads(new HashSet<>(Thread.getAllStackTraces().keySet()));
  }

  /** Ends the threads with which Spark looks for idle Python processes for ever, also after its own stop. */
  void endMonitors() {
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      if (thread.getName().startsWith("Idle Worker Monitor for ")) {
        thread.setUncaughtExceptionHandler((ended, interrupted) -> { });
        thread.interrupt();
      }
    }
  }

  /** Returns the names of a job's threads that run, or will. */
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

  /** Returns the pool of a thread; null if this Java hides it. Java knows the way from the thread to its pool alone. */
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
