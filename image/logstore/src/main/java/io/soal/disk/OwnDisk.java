package io.soal.disk;

import java.io.File;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Set;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import scala.Option;

/**
 * Checks Spark's access to the function's own disk: it may write only below the job's temporary folder, which holds
 * Spark's own files and whatever a script needs only during the job.
 *
 * <p>The disk is emptied after each job, so a sink anywhere else on it would lose its rows while the job succeeds.
 * Spark may read everything but the handler's files, its own event log and /proc.
 */
final class OwnDisk {
  private static final Path TEMPORARY = Path.of(System.getProperty("java.io.tmpdir")).toAbsolutePath().normalize();
  /** Callers whose folders hold no rows: RDD checkpoints are the job's own; a database's tables are checked later. */
  private static final Set<String> MAKE_FOLDERS_ONLY = Set.of(
      "org.apache.spark.SparkContext.setCheckpointDir",
      "org.apache.spark.sql.catalyst.catalog.InMemoryCatalog.createDatabase");

  private static final Path PROCESSES = Path.of("/proc");
  /** The sandbox's other folders hold the script, its arguments, the event log, and other files of the handler. */
  private static final Set<String> PLACES_OF_THE_JOB = Set.of("tmp", "work", "home");

  /** Where Spark writes its event log, with the settings in clear: {@code Sandbox.event_logs} in Python. */
  private static final Path EVENT_LOGS = TEMPORARY.resolveSibling("spark-events");

  private OwnDisk() {}

  /** @throws EmptiedDiskException if the file is outside the temporary folder and the RDD checkpoint */
  static void checkFile(File file) throws EmptiedDiskException {
    Path path = file.toPath(); // Hadoop's paths are absolute, and without dots
    if (!path.startsWith(TEMPORARY) && !isOfCheckpoint(path)) {
      throw new EmptiedDiskException(path, TEMPORARY);
    }
  }

  /**
   * @throws AccessDeniedException for a file of the handler or below /proc, where a process's environment may hold
   *     secrets: the path may come from an argument or from a table's SQL
   */
  static void checkRead(File file) throws IOException {
    if (!file.exists()) {
      return; // the read itself reports that
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

  /** Like {@link #checkFile}, for a folder that does not exist yet. */
  static void checkFolder(File folder) throws EmptiedDiskException {
    if (!folder.isDirectory() && !isMadeWithoutRows()) {
      checkFile(folder);
    }
  }

  /** @throws AccessDeniedException if there is a file, or a folder with files, that is none of the job's own */
  static void checkRemoval(File file) throws AccessDeniedException {
    Path path = file.toPath();
    Path sandbox = TEMPORARY.getParent();
    boolean isOfJob = isOfCheckpoint(path)
        || PLACES_OF_THE_JOB.stream().anyMatch(place -> path.startsWith(sandbox.resolve(place)));
    // A database's empty folder may be anywhere: Spark has made it.
    String[] content = path.startsWith(sandbox) ? null : file.list();
    boolean holdsNothing = content != null && content.length == 0;
    if (!isOfJob && !holdsNothing && Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
      throw new AccessDeniedException(
          file.getPath(), null, "Spark deletes and moves only the job's own files, below " + sandbox + "; use Python");
    }
  }

  /**
   * Like {@link #checkRemoval} of the first and {@link #checkFile} of the second. Spark renames its event log once that
   * is whole, and nothing takes it to where it could be read.
   */
  static void checkRename(File from, File to) throws IOException {
    if (!EVENT_LOGS.equals(from.toPath().getParent()) || !EVENT_LOGS.equals(to.toPath().getParent())) {
      checkRemoval(from);
      checkFile(to);
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
