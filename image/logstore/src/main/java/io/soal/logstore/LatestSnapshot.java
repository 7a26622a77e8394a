package io.soal.logstore;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
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

/**
 * The present state of a table, as the guard records it at the claim.
 *
 * <p>Only what the record needs goes to Python: py4j answers in pieces of 8 KB, and after the first one TCP waits 40 ms.
 */
public final class LatestSnapshot {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Snapshot snapshot;

  private LatestSnapshot(Snapshot snapshot) {
    this.snapshot = snapshot;
  }

  /** Reads the state of a table, with one request if this session knows the table and nobody has written it since. */
  public static LatestSnapshot of(SparkSession session, String table) throws IOException {
    long askedMs = System.currentTimeMillis();
    DeltaLog log = DeltaLog.forTable(session, table);
    Snapshot found = log.unsafeVolatileSnapshot();
    if (!isLatest(log, found, session.sparkContext().hadoopConfiguration(), askedMs)) {
      found = log.update(false, Option.apply((Object) askedMs), Option.empty()); // nothing, if forTable has just read it
    }
    return new LatestSnapshot(found);
  }

  /**
   * The state as a JSON object: version, which is -1 for no table; modifiedMs, the time of its commit; id; features, of
   * readers and writers; properties, those of Delta.
   */
  public String json() throws IOException {
    ObjectNode state = JSON.createObjectNode().put("version", snapshot.version());
    if (snapshot.version() >= 0) {
      JsonNode protocol = JSON.readTree(snapshot.protocol().json()).get("protocol");
      JsonNode metadata = JSON.readTree(snapshot.metadata().json()).get("metaData");
      ArrayNode features = state.putArray("features");
      for (String of : List.of("readerFeatures", "writerFeatures")) {
        protocol.path(of).forEach(features::add);
      }
      ObjectNode properties = state.putObject("properties");
      metadata.path("configuration").properties().stream()
          .filter(one -> one.getKey().startsWith("delta."))
          .forEach(one -> properties.set(one.getKey(), one.getValue()));
      state.put("id", metadata.get("id").asText());
      state.put("modifiedMs", snapshot.logSegment().lastCommitFileModificationTimestamp());
    }
    return state.toString();
  }

  Path log() {
    return snapshot.path();
  }

  long version() {
    return snapshot.version();
  }

  /** The id of the table, empty if there is none. */
  String id() {
    return snapshot.version() < 0 ? "" : snapshot.metadata().id();
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
