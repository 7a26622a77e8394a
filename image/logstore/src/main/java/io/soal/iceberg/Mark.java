package io.soal.iceberg;

import java.io.Serializable;
import org.apache.spark.TaskContext;

/** What a guarded block puts before the names of the files that it writes: the mark of its attempt. */
final class Mark implements Serializable {
  private static final long serialVersionUID = 1L;

  /** The setting of the block's session that holds the mark; Spark hands a session's settings to its own tasks. */
  private static final String SETTING = "spark.safewriter.mark";

  // Not the metadata files: catalogs count them by the number that their names begin with.
  private static final String MANIFEST = ".avro";

  // Manifests are written by a pool of threads that all sessions share. What belongs to a session is its catalog, and
  // with it the object that has this one; tasks work with copies.
  private transient volatile String driver;

  void setDriver(String mark) {
    driver = mark;
  }

  /** Return where a file is written that is to be written at the path. */
  String put(String path) {
    TaskContext task = TaskContext.get();
    String mine = task != null ? task.getLocalProperty(SETTING) : path.endsWith(MANIFEST) ? driver : null;
    int name = path.lastIndexOf('/') + 1;
    return mine == null ? path : path.substring(0, name) + mine + path.substring(name);
  }
}
