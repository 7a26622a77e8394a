package io.soal.disk;

import java.io.IOException;
import java.nio.file.Path;

/** Thrown when Spark is about to write to the function's own disk, outside its temporary folder. */
public final class EmptiedDiskException extends IOException {
  private static final long serialVersionUID = 1;

  EmptiedDiskException(Path path, Path temporary) {
    super("Spark does not write " + path + ": it lies on the function's own disk, which is emptied after the job, so the"
        + " rows would be gone. Write to an s3a:// path, or to a table of an Iceberg catalog (catalog.database.table)."
        + " What only this job needs may lie below tempfile.gettempdir() (" + temporary + "), and Python's own files"
        + " anywhere in /tmp");
  }
}
