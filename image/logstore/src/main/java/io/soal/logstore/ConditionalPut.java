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
 * Creates an object if there is none ({@code If-None-Match: *}), and recognises its own write.
 *
 * <p>A failed PUT proves nothing: the SDK retries a request whose response was lost, and the retry finds its own
 * object. So after any failure this class reads the object back. Equal bytes are its own, since each commit carries a
 * random id. Where two writers may send equal bytes, a mark in a header identifies the writer.
 *
 * <p>The exception: a 403 to the only request that was sent, with no object there, proves that nothing was created.
 */
final class ConditionalPut implements ObjectStore {
  private static final int TRIES = 5;
  private static final long PAUSE_MS = 100;
  private static final int FORBIDDEN = 403;
  /** S3A sends smaller bodies in one PUT. It does not count its retries of a multipart upload's completion. */
  private static final int PART_MIN_BYTES = 5 << 20;
  private static final int CONFLICT = 409;
  private static final int SERVER_ERROR = 500;
  private static final String MARK = "soal-writer";
  private static final List<String> REPEATED = List.of("store_io_retry", "store_io_throttled");

  /** Waits; tests replace it. */
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

  /** @param mark unique to this writer, to recognise its own object; empty: compare the bytes */
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

  /** Returns the object's mark, empty if it has none; null if there is no object. */
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
   * Whether to retry: 409 asks for it; after server errors and broken connections it is safe, since the PUT is
   * conditional. After a timeout or an interrupt there is no time left.
   */
  private static boolean again(IOException error) {
    if (error instanceof InterruptedIOException) {
      return false;
    }
    int status = statusOf(error);
    return status == 0 || status == CONFLICT || status >= SERVER_ERROR;
  }

  /** Returns the HTTP status of S3's response, 0 if there was none. */
  private static int statusOf(IOException error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof SdkServiceException) {
        return ((SdkServiceException) cause).statusCode();
      }
    }
    return 0;
  }

  /**
   * Returns how often S3A and the SDK have retried any request of this file system, -1 if they do not count that. While
   * the number stays the same, no request was sent twice, and none is unanswered.
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
