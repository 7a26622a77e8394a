package io.soal.host;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.logging.log4j.LogManager;
import org.apache.spark.SparkUserAppException;
import org.apache.spark.deploy.SparkSubmit;
import org.apache.spark.internal.config.ConfigReader;

/**
 * Runs jobs, one after the other, each as Spark's own submission runs it: its settings, a Spark context of its own, a
 * Python process of its own. After a job that ended well nothing of it is left, or this JVM ends.
 *
 * <p>{@code Host JOB PYTHON PROGRAM}: the standard input is a socket. A newline on it asks for a job, whose arguments
 * for Spark's submission lie in the file JOB, with a zero byte after each. After a job that has left nothing a line goes
 * back: the number of the process that {@link PythonDrivers} keeps. After any other one this JVM ends with the job's
 * exit code. Any other byte asks for the line without a job, as soon as one could begin. The JVM also ends with the
 * socket.
 */
public final class Host {
  private Host() {}

  public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
    Path job = Path.of(arguments[0]);
    checkThatValuesAreLiteral();
    PythonDrivers.start(arguments[1], arguments[2]);
    try (OutputStream channel = new FileOutputStream(FileDescriptor.in)) {
      BetweenJobs between = BetweenJobs.atRest();
      for (int asked = System.in.read(); asked >= 0; asked = System.in.read()) {
        if (asked != '\n') {
          PythonDrivers.await();
          report(channel);
          continue;
        }
        String[] words = Files.readString(job, StandardCharsets.UTF_8).split("\0", -1);
        run(Arrays.copyOf(words, words.length - 1)); // what stands behind the last zero byte is no word
        String left = between.clear();
        if (left != null) {
          System.err.println("soal: this JVM ends, since the job has left " + left);
          end(0);
        }
        flush();
        report(channel);
      }
    } finally {
      end(1);
    }
  }

  /** Else paths, names of objects and options of a job could name secrets: see {@code io.soal.archive.LiteralValues}. */
  private static void checkThatValuesAreLiteral() {
    Map<String, String> texts = Map.of("one", "${other}", "other", "replaced");
    Configuration values = new Configuration(false);
    texts.forEach(values::set);
    if (!values.get("one").equals("${other}") || !new ConfigReader(texts).get("one").get().equals("${other}")) {
      System.err.println("soal: no job runs, since ${...} is replaced in settings and paths; soal-literal.jar must come"
          + " first on the class path: run scripts/setup, or build the image again");
      end(1);
    }
  }

  /** Runs a job; ends this JVM if the job fails, as Spark would. */
  private static void run(String[] arguments) {
    try {
      new SparkSubmit().doSubmit(arguments);
    } catch (Throwable error) { // Scala declares no exceptions
      if (error instanceof SparkUserAppException) {
        System.exit(((SparkUserAppException) error).exitCode());
      }
      error.printStackTrace(); // the submission itself failed
      System.exit(1);
    }
  }

  private static void report(OutputStream channel) throws IOException {
    channel.write((PythonDrivers.process().pid() + "\n").getBytes(StandardCharsets.US_ASCII));
  }

  /** Ends without the hooks of the libraries: everything that they would close is closed, or must not run any more. */
  private static void end(int code) {
    LogManager.shutdown();
    flush();
    Runtime.getRuntime().halt(code);
  }

  private static void flush() {
    System.out.flush();
    System.err.flush();
  }
}
