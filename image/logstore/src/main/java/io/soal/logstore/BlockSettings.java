package io.soal.logstore;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.regex.Pattern;
import org.apache.spark.sql.RuntimeConfig;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/** The session settings of an open block: they put the write's name into its commit and its file names. */
final class BlockSettings {
  private static final String TXN = "spark.databricks.delta.write.";
  private static final String METADATA = "spark.databricks.delta.commitInfo.userMetadata";
  // Internal to Delta and static, so it is set on the session state. Tested with every Delta release that is pinned here.
  private static final String FILE_PREFIX = "spark.databricks.delta.testOnly.dataFileNamePrefix";
  private static final Pattern WRITE_KEY = Pattern.compile("sw-[0-9a-f]{32}");

  private final RuntimeConfig conf;
  private final SQLConf fixed;
  private final Deque<Runnable> undo = new ArrayDeque<>();

  private BlockSettings(SparkSession session) {
    conf = session.conf();
    fixed = session.sessionState().conf();
  }

  static BlockSettings of(SparkSession session, Block block) {
    BlockSettings made = new BlockSettings(session);
    try {
      made.set(block);
    } catch (RuntimeException error) {
      made.restore();
      throw error;
    }
    return made;
  }

  private void set(Block block) {
    if (WRITE_KEY.matcher(conf.get(TXN + "txnAppId", "")).matches()) {
      // A session cloned in a skipped block (a stream's) keeps that block's transaction: Delta would skip this write.
      conf.unset(TXN + "txnAppId");
      conf.unset(TXN + "txnVersion");
      conf.unset(TXN + "txnVersion.autoReset.enabled");
    }
    ObjectNode mine = new ObjectMapper().createObjectNode();
    mine.putObject("safewriter").put("key", block.key()).put("epoch", block.epoch());
    Option<String> users = conf.getOption(METADATA);
    if (users.isDefined()) {
      mine.put("user", users.get()); // keep the user's own text
    }
    set(METADATA, mine.toString());
    // Delta does not see the transaction action that the gate adds: a checksum that lists transactions would lack it.
    set("spark.databricks.delta.setTransactionsInCrc.writeOnCommit", "false");
    set("spark.databricks.delta.commit.idempotencyCheck.enabled", "true");
    // A statement that changes nothing makes an empty commit with the write's transaction. Without it, that statement
    // would look like one that never ran or wrote elsewhere.
    set("spark.databricks.delta.skipRecordingEmptyCommits", "false");
    // A second commit would be refused, but only after its data files were written.
    set("spark.databricks.delta.autoCompact.enabled", "false");
    String before = fixed.getConfString(FILE_PREFIX, "");
    undo.push(() -> {
      if (before.isEmpty()) {
        fixed.unsetConf(FILE_PREFIX);
      } else {
        fixed.setConfString(FILE_PREFIX, before);
      }
    });
    fixed.setConfString(FILE_PREFIX, block.filePrefix());
    if (block.skipped()) {
      // Delta skips a transaction version that is not above the table's, and 1 is the lowest one.
      set(TXN + "txnAppId", block.key());
      set(TXN + "txnVersion", "1");
      set(TXN + "txnVersion.autoReset.enabled", "false");
    }
  }

  /** Returns the prefix of a session's data files (a stream's clone inherits it); empty: none. */
  static String filePrefix(SparkSession session) {
    return session.sessionState().conf().getConfString(FILE_PREFIX, "");
  }

  private void set(String key, String value) {
    Option<String> before = conf.getOption(key);
    undo.push(() -> {
      if (before.isDefined()) {
        conf.set(key, before.get());
      } else {
        conf.unset(key);
      }
    });
    conf.set(key, value);
  }

  /** Restores the session's settings in reverse order, continuing after a failure; then throws the first failure. */
  void restore() {
    RuntimeException first = null;
    while (!undo.isEmpty()) {
      try {
        undo.pop().run();
      } catch (RuntimeException error) {
        first = first == null ? error : first;
      }
    }
    if (first != null) {
      throw first;
    }
  }
}
