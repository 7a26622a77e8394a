package io.soal.logstore;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;

/**
 * The parameters of a block: {@code DeltaSession} sends them as a JSON object with these names.
 *
 * @param claimedAt a version of the table before the claim; no fence of this epoch can stand in it or before it
 * @param latestStartMs epoch milliseconds after which no commit may start; 0 or less: no limit
 * @param note s3a URI of the note that precedes a commit which creates the table
 * @param journal local file that gets a line about a commit before it is sent, and about a refused statement; empty: none
 * @param undoable whether only a commit may pass that an undo could take back
 * @param skipped whether an earlier attempt has committed the write: no commit passes, and Delta skips the write
 */
record Block(
    String table, String key, long epoch, long claimedAt, long latestStartMs, String note, String journal, String nonce,
    String filePrefix, boolean undoable, boolean skipped) {

  private static final ObjectMapper JSON =
      new ObjectMapper()
          .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
          .enable(DeserializationFeature.FAIL_ON_NULL_CREATOR_PROPERTIES);

  Block {
    table = canonical(table);
  }

  static Block parse(String json) throws IOException {
    return JSON.readValue(json, Block.class);
  }

  /** Whether the block began without a table, so that its commit creates one. */
  boolean creates() {
    return claimedAt < 0;
  }

  /** One name for one table: scheme and slashes as in SafeWriter's own canonical form. */
  static String canonical(String table) {
    String path = new Path(table).toString().replaceFirst("^s3[an]://", "s3://");
    return path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
  }

  /** The commit with the block's transaction action behind its first line, which is commitInfo and must stay the first. */
  byte[] withTransaction(byte[] commit) {
    String text = new String(commit, StandardCharsets.UTF_8);
    int end = text.indexOf('\n') + 1;
    String action = "{\"txn\":{\"appId\":\"" + key + "\",\"version\":" + epoch + ",\"lastUpdated\":"
        + System.currentTimeMillis() + "}}\n";
    return (text.substring(0, end) + action + text.substring(end)).getBytes(StandardCharsets.UTF_8);
  }

  /** The supervisor trusts this line: as long as it is missing, no commit was sent. So it is written first. */
  void announce() throws IOException {
    lines().tell("commit_passed", null);
  }

  /** The job's journal. */
  Journal lines() {
    return new Journal(journal, nonce);
  }
}
