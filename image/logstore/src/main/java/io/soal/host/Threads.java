package io.soal.host;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Tells which threads of a job still run after its end.
 *
 * <p>A thread of a pool that waits for work does none, whoever has made the pool. Libraries keep some threads of other
 * kinds for the life of the machine: those are known by name and by the class that they wait in.
 */
final class Threads {
  private static final Set<String> WAITING = Set.of(
      "java.util.concurrent.ThreadPoolExecutor.getTask",
      "java.util.concurrent.ForkJoinPool.awaitWork",
      "java.lang.ProcessHandleImpl$1.run",
      "jdk.internal.ref.CleanerImpl.run");

  /** Threads that clean up after others, and the sockets of a Spark that has stopped, which Netty closes two seconds late. */
  private static final Pattern KEPT = Pattern.compile(
      "(rpc|shuffle)-(boss|server|client)-.*|globalEventExecutor-.*|Timer for 's3a-file-system' metrics system|org\\.apache\\.hadoop\\.fs\\.FileSystem\\$Statistics\\$StatisticsDataReferenceCleaner"
          + "|idle-connection-reaper|process reaper.*|Log4j2-.*|JNA Cleaner|Finalizer|DestroyJavaVM");

  private final Set<Thread> before;

  private Threads(Set<Thread> before) {
    this.before = before;
  }

  /** Takes the threads that run now for those of the machine itself. */
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

  /** Returns the names of a job's threads that run. */
  List<String> running() {
    List<String> found = new ArrayList<>();
    for (Map.Entry<Thread, StackTraceElement[]> one : Thread.getAllStackTraces().entrySet()) {
      Thread thread = one.getKey();
      if (!before.contains(thread) && thread.isAlive() && !KEPT.matcher(thread.getName()).matches()
          && !waits(one.getValue())) {
        found.add(thread.getName());
      }
    }
    return found;
  }

  private static boolean waits(StackTraceElement[] stack) {
    return Arrays.stream(stack).anyMatch(frame -> WAITING.contains(frame.getClassName() + "." + frame.getMethodName()));
  }
}
