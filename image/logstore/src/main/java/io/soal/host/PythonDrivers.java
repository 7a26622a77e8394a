package io.soal.host;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkUserAppException;
import org.apache.spark.api.python.Py4JServer;

/**
 * The Python fork server: it has PySpark imported, and forks a driver for each job.
 *
 * <p>Spark's submission calls {@link #main} as the job's main class, in place of Spark's own PythonRunner.
 */
public final class PythonDrivers {
  private static final int KILLED = 128 + 9;
  private static Process server;

  private PythonDrivers() {}

  /** Starts the server. It inherits our stdout, and replies to us on its stderr. */
  static void start(String python, String program) throws IOException {
    server = new ProcessBuilder(python, program).redirectOutput(Redirect.INHERIT).start();
  }

  static ProcessHandle process() {
    return server.toHandle();
  }

  /** Waits until the server can fork a driver. */
  static void await() throws IOException {
    new DataOutputStream(server.getOutputStream()).writeInt(0);
    server.getOutputStream().flush();
    new DataInputStream(server.getErrorStream()).readInt();
  }

  /** @param arguments the script, and its own arguments */
  public static void main(String[] arguments) throws IOException, SparkUserAppException {
    Py4JServer gateway = new Py4JServer(new SparkConf());
    gateway.start();
    try {
      String[] connection = {String.valueOf(gateway.getListeningPort()), gateway.secret()};
      int code = run(String.join("\0", connection) + "\0" + String.join("\0", arguments));
      if (code != 0) {
        throw new SparkUserAppException(code, null);
      }
    } finally {
      gateway.shutdown();
    }
  }

  /** Returns the driver's exit code; 128 plus the signal if a signal killed it. */
  private static int run(String words) throws IOException {
    byte[] body = words.getBytes(StandardCharsets.UTF_8);
    DataOutputStream asked = new DataOutputStream(server.getOutputStream());
    asked.writeInt(body.length);
    asked.write(body);
    asked.flush();
    try {
      return new DataInputStream(server.getErrorStream()).readInt();
    } catch (EOFException ended) { // the server died, and its driver with it
      return KILLED;
    }
  }
}
