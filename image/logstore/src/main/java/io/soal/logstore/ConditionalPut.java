package io.soal.logstore;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.statistics.IOStatistics;
import org.apache.hadoop.fs.statistics.IOStatisticsSupport;
import software.amazon.awssdk.core.exception.SdkServiceException;

/**
 * Creates an object if there is none, and recognises its own write.
 *
 * <p>A failed PUT says nothing: the SDK repeats a request whose answer was lost, and the repetition meets its own object.
 * So after any failure the object is read back. Equal bytes are ours, since no two commits are equal (each carries a
 * random id). Where two writers may send equal bytes, a mark beside them, in a header, tells whose they are.
 *
 * <p>One failure does say something: a 403 to the only request that was sent, behind which there is no object.
 */
final class ConditionalPut implements ObjectStore {
  private static final int TRIES = 5;
  private static final long PAUSE_MS = 100;
  private static final int FORBIDDEN = 403;
  /** S3A sends less by one PUT: its parts are no smaller. It repeats the end of an upload in parts without counting. */
  private static final int PART_MIN_BYTES = 5 << 20;
  private static final int CONFLICT = 409;
  private static final int SERVER_ERROR = 500;
  private static final String MARK = "soal-writer";
  private static final List<String> REPEATED = List.of("store_io_retry", "store_io_throttled");

  /** How a thread waits. */
  interface Sleep {
    void ms(long ms) throws InterruptedException;
  }

  private final Configuration conf;
  private final Sleep sleep;

  ConditionalPut(Configuration conf) {
    this(conf, Thread::sleep);
  }

  ConditionalPut(Configuration conf, Sleep sleep) {
    this.conf = conf;
    this.sleep = sleep;
  }

  @Override
  public Outcome put(Path path, byte[] body) throws IOException {
    return put(path, body, "");
  }

  /** @param mark of this writer alone, by which it knows its object; empty: by its bytes */
  Outcome put(Path path, byte[] body, String mark) throws IOException {
    byte[] own = mark.isEmpty() ? body : mark.getBytes(StandardCharsets.UTF_8);
    FileSystem fs = path.getFileSystem(conf);
    IOException doubt = null;
    long repeatedBefore = repeated(fs);
    for (int attempt = 1; attempt <= TRIES; attempt++) {
      try {
        once(fs, path, body, mark);
        return Outcome.LANDED;
      } catch (IOException error) {
        if (doubt != null) {
          error.addSuppressed(doubt);
        }
        doubt = error;
      }
      byte[] there = readBack(path, mark, doubt);
      if (there != null) {
        return Arrays.equals(there, own) ? Outcome.LANDED : Outcome.TAKEN;
      }
      boolean isOnlyOne = body.length < PART_MIN_BYTES && repeatedBefore >= 0 && repeated(fs) == repeatedBefore;
      if (attempt == 1 && statusOf(doubt) == FORBIDDEN && isOnlyOne) {
        throw new Denied(path, doubt);
      }
      if (attempt == TRIES || !again(doubt)) {
        break;
      }
      pause(attempt);
    }
    throw doubt;
  }

  @Override
  public byte[] read(Path path) throws IOException {
    try (FSDataInputStream in = path.getFileSystem(conf).open(path)) {
      return in.readAllBytes();
    } catch (FileNotFoundException missing) {
      return null;
    }
  }

  @Override
  public CompletableFuture<byte[]> readLater(Path path) {
    CompletableFuture<byte[]> found = new CompletableFuture<>();
    Thread reader = new Thread(() -> {
      try {
        found.complete(read(path));
      } catch (IOException | RuntimeException | Error error) {
        found.completeExceptionally(error);
      }
    }, "safewriter-read-back");
    reader.setDaemon(true);
    reader.start();
    return found;
  }

  private byte[] readBack(Path path, String mark, IOException doubt) throws IOException {
    try {
      return mark.isEmpty() ? read(path) : markOf(path);
    } catch (IOException error) {
      error.addSuppressed(doubt);
      throw error;
    }
  }

  /** Returns the mark of the object, empty if it has none, or null if there is no object. */
  private byte[] markOf(Path path) throws IOException {
    try {
      byte[] mark = path.getFileSystem(conf).getXAttr(path, "header." + MARK);
      return mark == null ? new byte[0] : mark;
    } catch (FileNotFoundException missing) {
      return null;
    }
  }

  private static void once(FileSystem fs, Path path, byte[] body, String mark) throws IOException {
    // Only this builder option makes S3A send If-None-Match; create(path, false) checks first and then overwrites.
    FSDataOutputStreamBuilder<?, ?> builder = fs.createFile(path);
    builder.overwrite(false);
    builder.must("fs.option.create.conditional.overwrite", true);
    if (!mark.isEmpty()) {
      builder.must("fs.s3a.create.header." + MARK, mark);
    }
    FSDataOutputStream out = builder.build();
    try {
      out.write(body);
    } catch (IOException error) {
      out.abort(); // closing would send a part of the body
      throw error;
    }
    out.close();
  }

  /**
   * 409 asks for a repetition; server errors and broken connections may be repeated because the PUT is conditional.
   * After a timeout or an interrupt there is no time for another try.
   */
  private static boolean again(IOException error) {
    if (error instanceof InterruptedIOException) {
      return false;
    }
    int status = statusOf(error);
    return status == 0 || status == CONFLICT || status >= SERVER_ERROR;
  }

  /** Returns the status of S3's answer, 0 if there was none. */
  private static int statusOf(IOException error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof SdkServiceException) {
        return ((SdkServiceException) cause).statusCode();
      }
    }
    return 0;
  }

  /**
   * Returns how often the layers below, S3A and the SDK, have sent any request of the file system again, -1 if they do not
   * count that. As long as the number stays, no request has been sent twice, and none is left without an answer.
   */
  private static long repeated(FileSystem fs) {
    IOStatistics counted = IOStatisticsSupport.retrieveIOStatistics(fs);
    if (counted == null || !counted.counters().keySet().containsAll(REPEATED)) {
      return -1;
    }
    return REPEATED.stream().mapToLong(counted.counters()::get).sum();
  }

  private void pause(int attempt) throws IOException {
    try {
      sleep.ms(PAUSE_MS * attempt);
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted between two tries of a conditional PUT");
    }
  }
}
