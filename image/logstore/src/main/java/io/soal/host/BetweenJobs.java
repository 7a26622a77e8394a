package io.soal.host;

import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.TimeZone;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FileSystem;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.execution.streaming.state.StateStore$;
import org.apache.spark.util.AccumulatorContext$;
import scala.Option;

/**
 * Takes away what a job has left in this Java machine.
 *
 * <p>The job's Spark context is stopped, and with it goes all that a context holds: settings, sessions, views, catalogs,
 * cached tables, files and modules, accumulators, listeners, streams, jobs, and the Python processes of functions. The
 * rest is what Java and Hadoop keep for the whole machine.
 */
final class BetweenJobs {
  private static final long QUIET_MS = 3_000;
  private static final long POLL_MS = 2;
  private static final double HEAP_SHARE_MAX = 0.5;

  private final Threads threads = Threads.atRest();
  private final Properties properties = (Properties) System.getProperties().clone();
  private final TimeZone zone = TimeZone.getDefault();
  private final Locale locale = Locale.getDefault();
  private final PrintStream out = System.out;
  private final PrintStream err = System.err;
  private final ClassLoader loader = Thread.currentThread().getContextClassLoader();

  private BetweenJobs() {}

  static BetweenJobs atRest() {
    return new BetweenJobs();
  }

  /** Returns what of the job is still there; null: nothing. */
  String clear() {
    try {
      stopSpark();
      restore();
    } catch (IOException | RuntimeException error) {
      return "something that cannot be closed: " + error;
    }
    return left();
  }

  private void stopSpark() throws IOException {
    Option<SparkContext> context = SparkContext$.MODULE$.getActive();
    if (context.isDefined()) {
      context.get().stop();
    }
    AccumulatorContext$.MODULE$.clear();
    StateStore$.MODULE$.stop();
    threads.endMonitors();
    FileSystem.closeAll(); // one that is open keeps the settings and the credentials of the job
  }

  private void restore() {
    System.setProperties((Properties) properties.clone());
    TimeZone.setDefault(zone);
    Locale.setDefault(locale);
    System.setOut(out);
    System.setErr(err);
    Thread.currentThread().setContextClassLoader(loader);
    Configurator.reconfigure();
  }

  private String left() {
    long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(QUIET_MS);
    while (true) {
      List<String> running = threads.running();
      List<String> processes = processes();
      if (running.isEmpty() && processes.isEmpty()) {
        return memory();
      }
      if (System.nanoTime() >= until) {
        return running.isEmpty() ? "processes: " + String.join(", ", processes) : "threads: " + String.join(", ", running);
      }
      try {
        Thread.sleep(POLL_MS);
      } catch (InterruptedException interrupted) {
        return "an interrupt";
      }
    }
  }

  private static List<String> processes() {
    return ProcessHandle.current().descendants()
        .filter(process -> !process.equals(PythonDrivers.process()))
        .map(process -> process.pid() + " " + process.info().command().orElse("?"))
        .collect(Collectors.toList());
  }

  /** A heap that is half full of what nobody uses any more, as far as can be told, is a leak that grows. */
  private static String memory() {
    if (heapShare() <= HEAP_SHARE_MAX) {
      return null;
    }
    System.gc();
    double share = heapShare();
    return share <= HEAP_SHARE_MAX ? null : String.format(Locale.ROOT, "%.0f %% of the heap in use", share * 100);
  }

  private static double heapShare() {
    MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
    return (double) heap.getUsed() / heap.getMax();
  }
}
