package io.soal.logstore;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;

/**
 * The parameters of a block: {@code DeltaSession} sends them as a JSON object with these names.
 *
 * @param claimedAt a version of the table before the claim; no fence of this epoch can be in it or before it
 * @param latestStartMs epoch milliseconds after which no commit may start; 0 or less: no limit
 * @param note s3a URI of the note that the gate puts before a commit that creates the table
 * @param journal local file that gets a line before a commit is sent, and for each refused statement; empty: none
 * @param undoable whether the gate refuses a commit that an undo could not take back
 * @param skipped whether an earlier attempt committed the write: no commit passes, and Delta skips it
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

  /** Whether the block began without a table, so that its commit creates it. */
  boolean creates() {
    return claimedAt < 0;
  }

  /** Returns the table's URI in SafeWriter's canonical form: scheme s3, no trailing slash. */
  static String canonical(String table) {
    String path = new Path(table).toString().replaceFirst("^s3[an]://", "s3://");
    return path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
  }

  /** Returns the commit with the block's transaction action after commitInfo, which must stay the first line. */
  byte[] withTransaction(byte[] commit) {
    String text = new String(commit, StandardCharsets.UTF_8);
    int end = text.indexOf('\n') + 1;
    String action = "{\"txn\":{\"appId\":\"" + key + "\",\"version\":" + epoch + ",\"lastUpdated\":"
        + System.currentTimeMillis() + "}}\n";
    return (text.substring(0, end) + action + text.substring(end)).getBytes(StandardCharsets.UTF_8);
  }

  /** Writes the journal's line before a commit is sent: if it is missing, the supervisor knows that none was sent. */
  void announce() throws IOException {
    lines().tell("commit_passed", null);
  }

  /** Returns the job's journal, with the block's nonce. */
  Journal lines() {
    return new Journal(journal, nonce);
  }
}
