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
 * Runs jobs one after the other, each through spark-submit's own class, with its own settings, Spark context and Python
 * process. If anything of a job is left, this JVM exits.
 *
 * <p>{@code Host JOB PYTHON PROGRAM}: the standard input is a socket. A newline starts a job, whose spark-submit
 * arguments are in the file JOB, each followed by a zero byte. After a job that ended with exit code 0, or with the one
 * of a job that wants another attempt, and has left nothing, the JVM writes the ready line: the pid of the process that
 * {@link PythonDrivers} keeps, and the exit code. After any other job it exits with the job's exit code. Any other byte
 * only requests the ready line, sent once a job could start. The JVM also exits when the socket closes.
 */
public final class Host {
  /** SafeWriter's EXIT_TRY_AGAIN. Parts that end for want of time end with it: the handler decides which job it was. */
  private static final int TRY_AGAIN = 75;

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
          System.gc(); // no collection in the first job, nor in a copy of this memory
          report(channel, 0);
          continue;
        }
        Generators.renew(Files.readAllBytes(Path.of(System.getenv("SOAL_JOB")))); // it names the attempt
        String[] words = Files.readString(job, StandardCharsets.UTF_8).split("\0", -1);
        int code = run(Arrays.copyOf(words, words.length - 1)); // nothing follows the last zero byte
        String left = between.clear();
        if (left != null) {
          System.err.println("soal: this JVM ends, since the job has left " + left);
          end(code);
        }
        flush();
        report(channel, code);
      }
    } finally {
      end(1);
    }
  }

  /** Exits if ${...} is replaced, since a job's paths and options could name secrets (see PatchedClasses). */
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

  /** Runs a job and returns its exit code, 0 or TRY_AGAIN; exits this JVM if the job fails, as spark-submit does. */
  private static int run(String[] arguments) {
    try {
      new SparkSubmit().doSubmit(arguments);
      return 0;
    } catch (Throwable error) { // Scala declares no exceptions
      int code = 1;
      if (error instanceof SparkUserAppException) {
        code = ((SparkUserAppException) error).exitCode();
      } else {
        error.printStackTrace(); // the submission itself failed
      }
      if (code != TRY_AGAIN) {
        System.exit(code);
      }
      return code;
    }
  }

  private static void report(OutputStream channel, int code) throws IOException {
    String line = PythonDrivers.process().pid() + " " + code + "\n";
    channel.write(line.getBytes(StandardCharsets.US_ASCII));
  }

  /** Halts without shutdown hooks: what they would close is closed already, or must not run any more. */
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
