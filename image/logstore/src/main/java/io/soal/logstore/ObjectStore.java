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

  /** Creates an object if there is none; an exception means that nobody knows. */
  Outcome put(Path path, byte[] body) throws IOException;

  /** Returns the content of the object, or null if there is none; an exception means that nobody knows. */
  byte[] read(Path path) throws IOException;

  /** Reads an object beside the caller's own work. */
  CompletableFuture<byte[]> readLater(Path path);
}
