package io.soal.disk;

import java.io.File;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Path;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import scala.Option;

/**
 * Where Spark may write on the function's own disk: below the job's temporary folder, in which Spark's own files lie, and
 * in which a script puts what it does not need after the job.
 *
 * <p>The disk is emptied after each job, so a sink anywhere else on it would lose its rows while the job succeeds. Spark
 * reads there what is not the handler's.
 */
final class OwnDisk {
  private static final Path TEMPORARY = Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath().normalize();
  /** Make folders without rows: a checkpoint of RDDs is read by its own job alone; tables in a database are sinks themselves. */
  private static final Set<String> MAKE_FOLDERS_ONLY = Set.of(
      "org.apache.spark.SparkContext.setCheckpointDir",
      "org.apache.spark.sql.catalyst.catalog.InMemoryCatalog.createDatabase");

  private static final Path PROCESSES = Path.of("/proc");
  /** Beside them lie the script, its arguments, and other files of the handler. */
  private static final Set<String> PLACES_OF_THE_JOB = Set.of("tmp", "work", "home");

  private OwnDisk() {}

  /** @throws EmptiedDiskException if a file would be gone after the job, although a script may count on it */
  static void checkFile(File file) throws EmptiedDiskException {
    Path path = file.toPath(); // Hadoop's paths are absolute, and without dots
    if (!path.startsWith(TEMPORARY) && !isOfCheckpoint(path)) {
      throw new EmptiedDiskException(path, TEMPORARY);
    }
  }

  /**
   * @throws AccessDeniedException for a file that is not the job's, since the path may come from an argument or from a
   *     table's SQL: one in which Linux shows a process, whose environment may hold secrets, or one of the handler
   */
  static void checkRead(File file) throws IOException {
    if (!file.exists()) {
      return; // the read tells that itself
    }
    Path path = file.toPath().toRealPath();
    Path sandbox = TEMPORARY.getParent().toRealPath();
    boolean isOfHandler = path.startsWith(sandbox)
        && PLACES_OF_THE_JOB.stream().noneMatch(place -> path.startsWith(sandbox.resolve(place)));
    if (isOfHandler || path.startsWith(PROCESSES)) {
      throw new AccessDeniedException(
          file.getPath(), null, "Spark reads no files of processes or of the handler; open it in the script");
    }
  }

  /** The same for a folder that is not there yet. */
  static void checkFolder(File folder) throws EmptiedDiskException {
    if (!folder.isDirectory() && !isMadeWithoutRows()) {
      checkFile(folder);
    }
  }

  private static boolean isOfCheckpoint(Path path) {
    Option<SparkContext> context = SparkContext$.MODULE$.getActive();
    Option<String> folder = context.isDefined() ? context.get().getCheckpointDir() : Option.empty();
    return folder.isDefined()
        && path.startsWith(Path.of(new org.apache.hadoop.fs.Path(folder.get()).toUri().getPath()));
  }

  private static boolean isMadeWithoutRows() {
    return StackWalker.getInstance().walk(frames -> frames
        .anyMatch(frame -> MAKE_FOLDERS_ONLY.contains(frame.getClassName() + "." + frame.getMethodName())));
  }
}
