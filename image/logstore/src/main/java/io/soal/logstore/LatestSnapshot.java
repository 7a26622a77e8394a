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
 * The current state of a table, as the guard records it at the claim.
 *
 * <p>Python gets only the fields that the record needs: py4j sends 8 KB at a time, and TCP waits 40 ms after the first.
 */
public final class LatestSnapshot {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Snapshot snapshot;

  private LatestSnapshot(Snapshot snapshot) {
    this.snapshot = snapshot;
  }

  /** Reads the state of a table, with one request if this session knows the table and it has not changed. */
  public static LatestSnapshot of(SparkSession session, String table) throws IOException {
    long askedMs = System.currentTimeMillis();
    DeltaLog log = DeltaLog.forTable(session, table);
    Snapshot found = log.unsafeVolatileSnapshot();
    if (!isLatest(log, found, session.sparkContext().hadoopConfiguration(), askedMs)) {
      found = log.update(false, Option.apply((Object) askedMs), Option.empty()); // free if forTable just read it
    }
    return new LatestSnapshot(found);
  }

  /**
   * Returns a JSON object: version, -1 if there is no table; else also modifiedMs, the time of its commit; id;
   * features, of readers and writers; properties, the {@code delta.*} ones.
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

  /** Returns the table's id, empty if there is no table. */
  String id() {
    return snapshot.version() < 0 ? "" : snapshot.metadata().id();
  }

  /**
   * Whether the log ends with the version that the session knows. Delta's own update sends the same request and
   * compares the same version and time, but does another 10 ms of work.
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
