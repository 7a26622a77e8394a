package io.soal.host;

import io.soal.iceberg.StagingCatalog;
import io.soal.logstore.Gate;
import java.io.ObjectInputFilter;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.lang.reflect.Field;
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
 * Takes away what a job has left in this JVM.
 *
 * <p>The job's Spark context is stopped, and with it goes all that a context holds: settings, sessions, views, catalogs,
 * cached tables, files and modules, accumulators, listeners, streams, jobs, and the Python processes of functions. The
 * rest is what Java and Hadoop keep for the whole machine.
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

  /** Returns what of the job is still there; null: nothing. */
  String clear() {
    try {
      boolean hasSecret = hasSecret();
      stopSpark();
      String left = whenQuiet();
      if (left != null) {
        return left;
      }
      // Only now nobody can open another one, which would keep the settings and the credentials of the job.
      FileSystem.closeAll();
      restore();
      left = whenQuiet();
      if (left == null && hasSecret) {
        return "a secret in Hadoop's configuration, of which its libraries may have copies";
      }
      return left == null ? memory() : left;
    } catch (Throwable error) { // the job has ended well, whatever this is
      return "something that cannot be closed: " + error;
    }
  }

  /** Tells whether the script itself has put a secret into the configuration; Spark says of its own where it is from. */
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
    UserGroupInformation.reset(); // a login user keeps credentials that a job has added
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
   * Waits until nothing of the job runs; returns what still does after a while. Once is not enough: a thread that was just
   * given a task looks as if it waited for one.
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

  /** Through these a job would reach the requests and the data of the next one; for some there is no way back. */
  private static List<Object> defaults() {
    return Arrays.asList(ProxySelector.getDefault(), CookieHandler.getDefault(), ResponseCache.getDefault(),
        Authenticator.getDefault(), HttpURLConnection.getFollowRedirects(), ObjectInputFilter.Config.getSerialFilter(),
        DriverManager.getLoginTimeout(), HttpsURLConnection.getDefaultHostnameVerifier());
  }

  /** Java's own loggers, through which libraries log; Spark leads them all to Log4j by a handler of the root. */
  private void restoreLoggers() {
    LogManager manager = LogManager.getLogManager();
    for (String name : Collections.list(manager.getLoggerNames())) {
      Logger logger = manager.getLogger(name);
      if (logger == null) {
        continue; // collected meanwhile
      }
      if (name.isEmpty()) {
        logger.setLevel(level);
        continue;
      }
      if (name.equals("py4j") || name.startsWith("py4j.")) {
        continue; // Spark sets its level once, and it tells of each connection's end otherwise
      }
      logger.setLevel(null);
      logger.setFilter(null);
      logger.setUseParentHandlers(true);
      for (Handler handler : logger.getHandlers()) {
        logger.removeHandler(handler);
      }
    }
  }

  /** Java hands out single ones, and takes none back. */
  private static Properties securityProperties() throws ReflectiveOperationException {
    return (Properties) hidden(Security.class, "props");
  }

  /** The files from which each configuration of Hadoop's begins; classes of Hadoop add some when they are loaded. */
  @SuppressWarnings("unchecked")
  private static List<String> hadoopsResources() throws ReflectiveOperationException {
    return (List<String>) hidden(Configuration.class, "defaultResources");
  }

  private static Object hidden(Class<?> type, String name) throws ReflectiveOperationException {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(null);
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
