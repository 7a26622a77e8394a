package io.soal.logstore;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.Path;

/**
 * Checks whether a settler was faster than the block: a fence in the table's log, or a tombstone in place of the note.
 * If so, it throws {@link Refused}, which ends the block.
 */
final class Settlers {
  private final Block block;
  private final Pattern files;
  private long seenUpTo;
  private volatile boolean noted;

  Settlers(Block block) {
    this.block = block;
    this.files = Pattern.compile(Pattern.quote(block.key() + "-"));
    this.seenUpTo = block.claimedAt();
  }

  boolean noted() {
    return noted;
  }

  /**
   * Checks every version between the claim and the slot. All of them exist, since the slot is the next one, and none
   * can change; a later fence takes the slot itself. Without other writers there is nothing to read.
   */
  void lookBefore(Path slot, long target, ObjectStore objects) throws IOException {
    for (long between = seenUpTo + 1; between < target; between++) {
      Path path = new Path(slot.getParent(), String.format(Locale.ROOT, "%020d.json", between));
      if (!lookAt(path, between, objects)) {
        throw new Refused("gap", path + " is gone, so whether this write was settled cannot be told");
      }
    }
  }

  /** Checks one version; returns whether it exists. */
  boolean lookAt(Path slot, long version, ObjectStore objects) throws IOException {
    byte[] body = objects.read(slot);
    if (body == null) {
      return false;
    }
    CommitBody commit = CommitBody.parse(body);
    if (commit.transactions.getOrDefault(block.key(), -1L) >= block.epoch()) {
      throw settled();
    }
    // A RESTORE to an undone version, for example: this commit would write the same rows beside them.
    if (!commit.transactions.containsKey(block.key()) && !commit.newPrefixes(files).isEmpty()) {
      throw new Refused("fenced", slot + " has brought undone rows of this write back; nothing may be committed");
    }
    seenUpTo = version;
    return true;
  }

  /**
   * Records once what a settler could not know: the shape of a table that does not exist yet.
   *
   * <p>An empty log cannot be fenced by an empty commit: version 0 needs a schema. So a settler and the block compete
   * for one object. If the settler's tombstone is first, this commit is never sent; if the note is first, the settler
   * can fence with an empty table of the right shape.
   */
  void note(CommitBody commit, ObjectStore objects) throws IOException {
    if (noted || !block.creates()) {
      return;
    }
    byte[] body = (commit.creation + "{\"note\":{\"nonce\":\"" + block.nonce() + "\"}}\n").getBytes(StandardCharsets.UTF_8);
    if (objects.put(new Path(block.note()), body) != ObjectStore.Outcome.LANDED) {
      throw settled();
    }
    noted = true;
  }

  private static Refused settled() {
    return new Refused("fenced", "this write was settled by somebody else, nothing may be committed any more");
  }
}
