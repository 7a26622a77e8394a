package io.soal.logstore;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.delta.DeltaLog;
import org.apache.spark.sql.delta.Snapshot;
import scala.Option;

/** The present state of a table, as the guard records it at the claim. */
public final class LatestSnapshot {
  private static final ObjectMapper JSON = new ObjectMapper();

  private LatestSnapshot() {}

  /**
   * Reads the state of a table, with one request if this session knows the table and nobody has written it since.
   *
   * @return a JSON object: version, which is -1 for no table; modifiedMs, the time of its commit; protocol and metadata,
   *     the texts of these actions
   */
  public static String of(SparkSession session, String table) throws IOException {
    long askedMs = System.currentTimeMillis();
    DeltaLog log = DeltaLog.forTable(session, table);
    Snapshot found = log.unsafeVolatileSnapshot();
    if (!isLatest(log, found, session.sparkContext().hadoopConfiguration(), askedMs)) {
      found = log.update(false, Option.apply((Object) askedMs), Option.empty()); // nothing, if forTable has just read it
    }
    ObjectNode state = JSON.createObjectNode().put("version", found.version());
    if (found.version() >= 0) {
      state.put("modifiedMs", found.logSegment().lastCommitFileModificationTimestamp());
      state.put("protocol", found.protocol().json());
      state.put("metadata", found.metadata().json());
    }
    return state.toString();
  }

  /**
   * Whether the log ends with the version that the session knows. Delta's own update asks the same, and takes the same
   * for an answer: it compares version and time. But around its request it does the work of ten milliseconds.
   */
  private static boolean isLatest(DeltaLog log, Snapshot known, Configuration conf, long askedMs) throws IOException {
    Path folder = log.logPath();
    FileSystem files = folder.getFileSystem(conf);
    if (known.version() < 0
        || log.currentSnapshot().updateTimestamp() >= askedMs
        || !(files instanceof S3AFileSystem)) {
      return false;
    }
    Path last = new Path(folder, String.format("%020d.json", known.version()));
    List<FileStatus> commits =
        LogListing.from((S3AFileSystem) files, last).stream()
            .filter(one -> ConditionalS3LogStore.COMMIT.matcher(one.getPath().getName()).matches())
            .toList();
    return commits.size() == 1
        && commits.get(0).getPath().getName().equals(last.getName())
        && commits.get(0).getModificationTime() == known.logSegment().lastCommitFileModificationTimestamp();
  }
}
