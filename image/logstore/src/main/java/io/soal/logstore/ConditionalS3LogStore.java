package io.soal.logstore;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.S3AFileSystem;

/**
 * Delta's log on S3: each commit is one PUT with {@code If-None-Match: *}.
 *
 * <p>Delta's own S3 store checks whether the slot is free and then writes. That protects only the writers of one JVM:
 * two functions on one table can overwrite each other's commits, and both report success. Here S3 decides. A commit to
 * a table with an open SafeWriter block also passes a {@link Gate}.
 *
 * <p>Two lines of configuration, at session build:
 *
 * <pre>
 * spark.delta.logStore.s3a.impl = io.soal.logstore.ConditionalS3LogStore
 * spark.delta.logStore.s3.impl  = io.soal.logstore.ConditionalS3LogStore
 * </pre>
 *
 * @see <a href="https://github.com/delta-io/delta/issues/4813">delta-io/delta#4813</a>
 */
public final class ConditionalS3LogStore extends HadoopFileSystemLogStore {
  private static final String LOG = "_delta_log";
  static final Pattern COMMIT = Pattern.compile("(\\d{20})\\.json");

  public ConditionalS3LogStore(Configuration hadoopConf) {
    super(hadoopConf);
    CheckpointDistance.of(hadoopConf);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration hadoopConf)
      throws IOException {
    byte[] body = bytes(actions);
    if (overwrite) {
      try (FSDataOutputStream out = path.getFileSystem(hadoopConf).create(path, true)) {
        out.write(body);
      }
      return;
    }
    ObjectStore objects = new ConditionalPut(hadoopConf);
    Matcher commit = COMMIT.matcher(path.getName());
    if (commit.matches()) {
      String table = Block.canonical(path.getParent().getParent().toString());
      Gate gate = Gate.BLOCKS.find(table, body, Statement::current);
      commit(gate, path, Long.parseLong(commit.group(1)), body, objects);
    } else if (objects.put(path, body) != ObjectStore.Outcome.LANDED) {
      throw new FileAlreadyExistsException(path.toString());
    }
  }

  /** Sends a commit if its slot is free, through the gate unless that is null (a commit of no block). */
  static void commit(Gate gate, Path slot, long target, byte[] body, ObjectStore objects) throws IOException {
    byte[] own = CommitBody.withoutTransactions(body);
    ObjectStore.Outcome outcome = gate == null ? objects.put(slot, own) : gate.commit(slot, target, own, objects);
    if (outcome != ObjectStore.Outcome.LANDED) {
      throw new FileAlreadyExistsException(slot.toString());
    }
  }

  /**
   * Lists a folder's entries from a name on, in order.
   *
   * <p>Delta's own listing first asks twice whether the folder exists, and then lists all of it in pages of 1000: the
   * longer the log, the slower each read and each commit. So this method lists a log from the version on. Delta also
   * lists data folders by this method, for VACUUM and CONVERT; these, and an empty log, go to Delta's own listing.
   */
  @Override
  public Iterator<FileStatus> listFrom(Path path, Configuration hadoopConf) throws IOException {
    if (path.getParent().getName().equals(LOG) && path.getFileSystem(hadoopConf) instanceof S3AFileSystem s3) {
      List<FileStatus> found = LogListing.from(s3, s3.makeQualified(path));
      if (!found.isEmpty()) {
        return found.iterator();
      }
    }
    return super.listFrom(path, hadoopConf);
  }

  /** S3 shows an object whole or not at all. */
  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration hadoopConf) {
    return false;
  }

  private static byte[] bytes(Iterator<String> lines) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    while (lines.hasNext()) {
      out.writeBytes(lines.next().getBytes(StandardCharsets.UTF_8));
      out.write('\n');
    }
    return out.toByteArray();
  }
}
