package io.soal.logstore;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.fs.Path;

/** The object store, as a gate uses it: the table's log, and the note in the checkpoint bucket. */
interface ObjectStore {
  /** The outcome of a creation, as S3 has shown it. */
  enum Outcome {
    LANDED,
    TAKEN
  }

  /** S3 has refused the caller the only request that was sent: it has created nothing, and nothing is on its way. */
  final class Denied extends IOException {
    private static final long serialVersionUID = 1L;

    Denied(Path path, IOException answer) {
      super("S3 denies to write " + path + ": allow s3:PutObject on it, and its key of KMS, if it has one (" + answer + ")",
          answer);
    }
  }

  /** Creates an object if there is none; an exception means that nobody knows, unless it is {@link Denied}. */
  Outcome put(Path path, byte[] body) throws IOException;

  /** Returns the content of the object, or null if there is none; an exception means that nobody knows. */
  byte[] read(Path path) throws IOException;

  /** Reads an object beside the caller's own work. */
  CompletableFuture<byte[]> readLater(Path path);
}
