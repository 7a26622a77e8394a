package io.soal.host;

import io.soal.iceberg.StagingCatalog;
import io.soal.logstore.Gate;
import java.io.ObjectInputFilter;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.net.Authenticator;
import java.net.CookieHandler;
import java.net.HttpURLConnection;
import java.net.ProxySelector;
import java.net.ResponseCache;
import java.security.Provider;
import java.security.Security;
import java.sql.DriverManager;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.TimeZone;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.Logger;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.net.ssl.HttpsURLConnection;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.execution.streaming.state.StateStore$;
import org.apache.spark.util.AccumulatorContext$;
import scala.Option;

/**
 * Removes what a job has left in this JVM.
 *
 * <p>It stops the job's Spark context, and with it all that a context holds: settings, sessions, views, catalogs,
 * cached tables, files and modules, accumulators, listeners, streams, jobs, and the Python workers. Then it resets the
 * static state of Java and Hadoop.
 */
final class BetweenJobs {
  private static final long QUIET_MS = 3_000;
  private static final long POLL_MS = 3;
  private static final int QUIET_LOOKS = 3;
  private static final double HEAP_SHARE_MAX = 0.5;
  private static final Pattern HADOOPS_OWN = Pattern.compile("(core|hdfs|mapred|yarn)-(default|site)\\.xml");

  private static final Pattern SECRET =
      Pattern.compile("(secret|access)[._-]?key|password|passwd|token$|credential$", Pattern.CASE_INSENSITIVE);

  private final Threads threads = Threads.atRest();
  private final Properties properties = (Properties) System.getProperties().clone();
  private final TimeZone zone = TimeZone.getDefault();
  private final Locale locale = Locale.getDefault();
  private final Properties security = (Properties) securityProperties().clone();
  private final List<Provider> providers = List.of(Security.getProviders());
  private final List<Object> defaults = defaults();
  private final Level level = Logger.getLogger("").getLevel();
  private final PrintStream out = System.out;
  private final PrintStream err = System.err;
  private final ClassLoader loader = Thread.currentThread().getContextClassLoader();

  private BetweenJobs() throws ReflectiveOperationException {}

  static BetweenJobs atRest() throws ReflectiveOperationException {
    return new BetweenJobs();
  }

  /** Cleans up; returns a description of the first thing that is left, null if nothing is. */
  String clear() {
    try {
      boolean hasSecret = hasSecret();
      stopSpark();
      String left = whenQuiet();
      if (left != null) {
        return left;
      }
      // Only now can no thread open another one, which would keep the job's settings and credentials.
      FileSystem.closeAll();
      Threads.endInheritance();
      restore();
      left = whenQuiet();
      if (left == null && hasSecret) {
        return "a secret in Hadoop's configuration, of which its libraries may have copies";
      }
      return left == null ? memory() : left;
    } catch (Throwable error) { // the job has succeeded; a failed clean-up must not change that
      return "something that cannot be closed: " + error;
    }
  }

  /** Whether the script itself set a secret in Hadoop's configuration; Spark's own values name another source. */
  private static boolean hasSecret() {
    Option<SparkContext> context = SparkContext$.MODULE$.getActive();
    if (context.isEmpty()) {
      return false;
    }
    Configuration values = context.get().hadoopConfiguration();
    for (String name : values.getPropsWithPrefix("").keySet()) {
      if (SECRET.matcher(name).find() && Arrays.asList(values.getPropertySources(name)).contains("programmatically")) {
        return true;
      }
    }
    return false;
  }

  private void stopSpark() {
    Option<SparkContext> context = SparkContext$.MODULE$.getActive();
    if (context.isDefined()) {
      context.get().stop();
    }
    AccumulatorContext$.MODULE$.clear();
    StateStore$.MODULE$.stop();
    threads.endMonitors();
  }

  private void restore() throws ReflectiveOperationException {
    System.setProperties((Properties) properties.clone());
    Properties present = securityProperties();
    synchronized (present) {
      present.clear();
      present.putAll(security);
    }
    UserGroupInformation.reset(); // the login user would keep credentials that a job added
    hadoopsResources().removeIf(name -> !HADOOPS_OWN.matcher(name).matches());
    restoreLoggers();
    TimeZone.setDefault(zone);
    Locale.setDefault(locale);
    System.setOut(out);
    System.setErr(err);
    Thread.currentThread().setContextClassLoader(loader);
    Configurator.reconfigure();
  }

  /**
   * Waits up to {@code QUIET_MS} until nothing of the job runs; returns what is left, or null. One look is not enough:
   * a thread that was just given a task still looks idle.
   */
  private String whenQuiet() throws InterruptedException {
    long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(QUIET_MS);
    String left = left();
    for (int quiet = left == null ? 1 : 0; quiet < QUIET_LOOKS; quiet = left == null ? quiet + 1 : 0) {
      if (left != null && System.nanoTime() >= until) {
        return left;
      }
      Thread.sleep(POLL_MS);
      left = left();
    }
    return null;
  }

  private String left() {
    threads.endRenewals();
    List<String> running = threads.running();
    if (!running.isEmpty()) {
      return "threads: " + String.join(", ", running);
    }
    List<String> processes = processes();
    if (!processes.isEmpty()) {
      return "processes: " + String.join(", ", processes);
    }
    if (!PythonDrivers.process().isAlive()) {
      return "no Python for the next one";
    }
    if (!providers.equals(List.of(Security.getProviders()))) {
      return "other security providers";
    }
    if (!defaults.equals(defaults())) {
      return "other defaults of Java's network or serialization";
    }
    return Gate.isAnyOpen() || StagingCatalog.isAnyOpen() ? "an open block" : null;
  }

  /** JVM-wide defaults by which a job could reach the next job's requests and data. Some cannot be reset. */
  private static List<Object> defaults() {
    return Arrays.asList(ProxySelector.getDefault(), CookieHandler.getDefault(), ResponseCache.getDefault(),
        Authenticator.getDefault(), HttpURLConnection.getFollowRedirects(), ObjectInputFilter.Config.getSerialFilter(),
        DriverManager.getLoginTimeout(), HttpsURLConnection.getDefaultHostnameVerifier());
  }

  /** Resets java.util.logging, except the root's handler, by which Spark redirects it to Log4j. */
  private void restoreLoggers() {
    LogManager manager = LogManager.getLogManager();
    for (String name : Collections.list(manager.getLoggerNames())) {
      Logger logger = manager.getLogger(name);
      if (logger == null) {
        continue; // garbage-collected meanwhile
      }
      if (name.isEmpty()) {
        logger.setLevel(level);
        continue;
      }
      if (name.equals("py4j") || name.startsWith("py4j.")) {
        continue; // Spark sets this level only once; without it py4j logs each closed connection
      }
      logger.setLevel(null);
      logger.setFilter(null);
      logger.setUseParentHandlers(true);
      for (Handler handler : logger.getHandlers()) {
        logger.removeHandler(handler);
      }
    }
  }

  /** The field itself: the public API reads and sets single properties, and removes none. */
  private static Properties securityProperties() throws ReflectiveOperationException {
    return (Properties) Hidden.of(Security.class, "props");
  }

  /** The default resources of every Hadoop configuration; Hadoop's classes add some when they are loaded. */
  @SuppressWarnings("unchecked")
  private static List<String> hadoopsResources() throws ReflectiveOperationException {
    return (List<String>) Hidden.of(Configuration.class, "defaultResources");
  }

  private static List<String> processes() {
    return ProcessHandle.current().descendants()
        .filter(process -> !process.equals(PythonDrivers.process()))
        .map(process -> process.pid() + " " + process.info().command().orElse("?"))
        .collect(Collectors.toList());
  }

  /** Returns the heap's use if it stays above {@code HEAP_SHARE_MAX} after a collection: probably a growing leak. */
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
