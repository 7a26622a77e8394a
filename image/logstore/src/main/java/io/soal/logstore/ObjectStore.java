package io.soal.logstore;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.fs.Path;

/** The object store that a gate uses, for the table's log and the note in the checkpoint bucket. */
interface ObjectStore {
  /** The confirmed outcome of a creation: this writer's object landed, or another one has the place. */
  enum Outcome {
    LANDED,
    TAKEN
  }

  /** S3 denied the only request that was sent: nothing was created, and nothing is in flight. */
  final class Denied extends IOException {
    private static final long serialVersionUID = 1L;

    Denied(Path path, IOException answer) {
      super("S3 denies to write " + path + ": allow s3:PutObject on it, and its key of KMS, if it has one (" + answer + ")",
          answer);
    }
  }

  /** Creates an object if there is none; after an exception other than {@link Denied} the outcome is unknown. */
  Outcome put(Path path, byte[] body) throws IOException;

  /** Returns the object's content, null if there is no object; throws if that cannot be read. */
  byte[] read(Path path) throws IOException;

  /** Like {@link #read}, on another thread. */
  CompletableFuture<byte[]> readLater(Path path);
}
