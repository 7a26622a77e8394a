package io.soal.logstore;

import java.io.IOException;
import org.apache.hadoop.fs.Path;

/** The object store, as a gate uses it: the table's log, and the note in the checkpoint bucket. */
interface ObjectStore {
  /** What S3 has shown to be true. */
  enum Outcome {
    LANDED,
    TAKEN
  }

  /** Creates an object if there is none; an exception means that nobody knows. */
  Outcome put(Path path, byte[] body) throws IOException;

  /** Returns what the object holds, or null if there is none; an exception says that it cannot be told. */
  byte[] read(Path path) throws IOException;
}
