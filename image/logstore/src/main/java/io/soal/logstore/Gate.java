package io.soal.logstore;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import scala.Option;

/**
 * The place that every commit of a guarded table passes, first try and rebase alike.
 *
 * <p>A gate belongs to one block: one Spark session, one table, one (write key, epoch). It lets exactly one commit through,
 * not after the latest start, and knows afterwards whether that commit landed. The guard drives it from Python:
 *
 * <pre>
 * Gate gate = Gate.open(session, table, key, epoch, versionBefore, latestStartMs, before, note, journal, nonce,
 *     filePrefix, jobGroup);
 * gate.shut("deadline"); gate.status(); gate.passed(); gate.version(); gate.refusal(); gate.close();
 * </pre>
 *
 * <p>The gate puts the block's transaction action into the commit itself, and looks for a fence of the same key in every
 * version that it has not seen. Delta can do both, but to know the stored transactions it reconstructs the table's state,
 * which costs more than all the rest of the guard.
 *
 * <p>Nothing may rest on what a gate says of the table except one thing: when no commit ever passed, none can land.
 */
public final class Gate {
  /** The protocol between this class and the guard; both sides must name the same number. */
  public static final int PROTOCOL = 4;

  private static final Map<String, List<Gate>> OPEN = new ConcurrentHashMap<>();
  private static final Pattern PREFIX = Pattern.compile("sw-[0-9a-f]{12}-\\d+-[0-9a-f]{16}-");
  private static final int ENDED_MAX = 100_000;

  /** Operations that write rows. Whatever else a commit can be (maintenance, properties, a stream's own) is no batch. */
  private static final Set<String> GUARDED = new TreeSet<>(List.of(
      "WRITE", "MERGE", "UPDATE", "DELETE", "TRUNCATE", "CREATE TABLE", "CREATE TABLE AS SELECT", "REPLACE TABLE",
      "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT"));

  /**
   * File prefixes of blocks that are over. A statement can outlive its block (a thread of the user's, an interrupt); what
   * it would commit was settled, and perhaps deleted, without it.
   */
  private static final Set<String> ENDED =
      Collections.synchronizedSet(Collections.newSetFromMap(new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Boolean> eldest) {
          return size() > ENDED_MAX;
        }
      }));

  private final WeakReference<SparkSession> session;
  private final String table;
  private final String key;
  private final long epoch;
  private final long claimedAt;
  private final long latestStartMs;
  private final String before;
  private final String note;
  private final String journal;
  private final String nonce;
  private final String filePrefix;
  private final String jobGroup;

  private String status = "none";
  private String refusal = "";
  private String shutBy = "";
  private String stray = "";
  private boolean passed;
  private boolean noted;
  private long version = -1;
  private long seenUpTo;

  private Gate(
      SparkSession session, String table, String key, long epoch, long versionBefore, long latestStartMs,
      String before, String note, String journal, String nonce, String filePrefix, String jobGroup) {
    this.session = new WeakReference<>(session);
    this.table = table;
    this.key = key;
    this.epoch = epoch;
    this.claimedAt = versionBefore;
    this.seenUpTo = versionBefore;
    this.latestStartMs = latestStartMs;
    this.before = before;
    this.note = note;
    this.journal = journal;
    this.nonce = nonce;
    this.filePrefix = filePrefix;
    this.jobGroup = jobGroup;
  }

  public static int protocol() {
    return PROTOCOL;
  }

  /**
   * Opens the gate of one block.
   *
   * @param versionBefore a version of the table before the claim; no fence of this epoch can stand in it or before it
   * @param latestStartMs epoch milliseconds after which no commit may start; 0 or less: no limit
   * @param before the protocol and metaData actions of the table at the claim, a line each; empty: there is none
   * @param note s3a URI of the note that precedes a commit which creates the table or changes its metadata
   * @param journal local file that learns of a commit before it is sent; empty: none
   */
  public static Gate open(
      SparkSession session, String table, String key, long epoch, long versionBefore, long latestStartMs,
      String before, String note, String journal, String nonce, String filePrefix, String jobGroup) {
    if (busy(session)) {
      throw new IllegalStateException("another SafeWriter block is open on this Spark session");
    }
    Gate gate = new Gate(
        session, canonical(table), key, epoch, versionBefore, latestStartMs, before, note, journal, nonce, filePrefix,
        jobGroup);
    OPEN.computeIfAbsent(gate.table, t -> new CopyOnWriteArrayList<>()).add(gate);
    return gate;
  }

  /** Whether a block is open on a session, whatever object stands for it in Python. */
  public static boolean busy(SparkSession session) {
    return OPEN.values().stream().flatMap(List::stream).anyMatch(gate -> gate.session.get() == session);
  }

  /** Ends the block: other writes of the table go on, still conditionally; what is left of the block's own does not. */
  public void close() {
    shut("the block is over");
    ENDED.add(filePrefix);
    OPEN.computeIfPresent(table, (t, gates) -> {
      gates.remove(this);
      return gates.isEmpty() ? null : gates;
    });
  }

  /** Lets nothing through from now on; the first reason stays. */
  public synchronized void shut(String reason) {
    if (shutBy.isEmpty()) {
      shutBy = reason;
    }
  }

  /** One of none, in flight, landed, unknown. */
  public synchronized String status() {
    return status;
  }

  /** Whether a commit of this block was ever sent. */
  public synchronized boolean passed() {
    return passed;
  }

  /** The version of the commit that landed, or of the one last sent; -1: none. */
  public synchronized long version() {
    return version;
  }

  /** The code and message of the first refusal, or nothing. */
  public synchronized String refusal() {
    return refusal;
  }

  /** Whether a note was put into the checkpoint bucket. */
  public synchronized boolean noted() {
    return noted;
  }

  /** What was written past this gate: another table by the block's session, or this table by another one; or nothing. */
  public synchronized String stray() {
    return stray;
  }

  /** One name for one table: scheme and slashes as in SafeWriter's own canonical form. */
  static String canonical(String table) {
    String path = new Path(table).toString().replaceFirst("^s3[an]://", "s3://");
    return path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
  }

  /** Returns the gate that a commit has to pass, or null if the table is not guarded from where the commit comes. */
  static Gate find(String table, byte[] body) throws IOException {
    refuseLeftovers(body);
    SparkSession active = OPEN.isEmpty() ? null : active();
    Gate own = null;
    for (List<Gate> gates : OPEN.values()) {
      for (Gate gate : gates) {
        boolean same = gate.table.equals(table);
        if (gate.session.get() != active) {
          if (same && gate.isCaller(active)) {
            throw gate.refuse("session", "this write comes from the block's own code, but from another Spark session;"
                + " open the block with the session of the data: SafeWriter(frame.sparkSession, ...)");
          }
          if (same) {
            gate.strayed(table + " from another Spark session");
          }
        } else if (same) {
          own = gate;
        } else {
          gate.strayed(table);
        }
      }
    }
    return own;
  }

  /** A frame of another session, written where the block was opened (in foreachBatch, say), is not somebody else's. */
  private boolean isCaller(SparkSession active) {
    return active != null && jobGroup.equals(active.sparkContext().getLocalProperty("spark.jobGroup.id"));
  }

  private static void refuseLeftovers(byte[] body) throws IOException {
    if (ENDED.isEmpty()) {
      return;
    }
    CommitBody commit = CommitBody.parse(body);
    // A file that is put back, or gets a deletion vector, was in the table before.
    if (commit.operation.equals("RESTORE") || commit.operation.equals("CLONE")) {
      return;
    }
    for (String path : commit.newFiles()) {
      Matcher prefix = PREFIX.matcher(path);
      if (prefix.find() && ENDED.contains(prefix.group())) {
        throw new Refused("over", "the SafeWriter block of this statement is over, and its write was settled without"
            + " it; nothing of it may be committed any more");
      }
    }
  }

  private static SparkSession active() {
    Option<SparkSession> active = SparkSession.getActiveSession();
    return active.isDefined() ? active.get() : null;
  }

  private synchronized void strayed(String other) {
    stray = other;
  }

  /** Lets one commit through or throws {@link Refused}; returns the commit as it is to be sent. */
  byte[] pass(Path slot, long target, byte[] body, Configuration conf) throws IOException {
    CommitBody commit = CommitBody.parse(body);
    check(target, commit);
    lookForFence(slot, target, conf);
    if ((before.isEmpty() || commit.changesMetadata) && !noted) {
      note(commit, conf);
    }
    synchronized (this) {
      check(target, commit); // the watchdog may have shut the gate meanwhile
      announce();
      passed = true;
      status = "in flight";
      version = target;
    }
    return marked(body);
  }

  private synchronized void check(long target, CommitBody commit) throws Refused {
    if (!shutBy.isEmpty()) {
      throw refuse("shut", "no commit may start any more: " + shutBy);
    }
    if (latestStartMs > 0 && System.currentTimeMillis() > latestStartMs) {
      throw refuse("late", "the deadline is too near for a commit to start");
    }
    if (status.equals("landed") || status.equals("in flight")) {
      throw refuse("second", "this block's commit is version " + version + " already; a block holds one commit");
    }
    checkOperation(target, commit);
  }

  /**
   * Looks at every version between the claim and the slot. All of them exist, since the slot is the next one, and none can
   * change; a fence that comes later takes the slot itself. Without other writers there is nothing to read.
   */
  private void lookForFence(Path slot, long target, Configuration conf) throws IOException {
    FileSystem fs = slot.getFileSystem(conf);
    for (long between = seenUpTo + 1; between < target; between++) {
      Path path = new Path(slot.getParent(), String.format(Locale.ROOT, "%020d.json", between));
      byte[] body = ConditionalPut.read(fs, path);
      if (body == null) {
        shut("version " + between + " is gone");
        throw refuse("gap", path + " is gone, so whether this write was settled cannot be told");
      }
      checkFence(body);
      seenUpTo = between;
    }
  }

  private void checkFence(byte[] body) throws IOException {
    if (CommitBody.parse(body).transactions.getOrDefault(key, -1L) >= epoch) {
      shut("this write was settled by somebody else");
      throw refuse("fenced", "this write was settled by somebody else, nothing may be committed any more");
    }
  }

  /** The transaction action goes behind the first line, which is commitInfo and must stay the first. */
  private byte[] marked(byte[] body) {
    String text = new String(body, StandardCharsets.UTF_8);
    int end = text.indexOf('\n') + 1;
    String mark = "{\"txn\":{\"appId\":\"" + key + "\",\"version\":" + epoch + ",\"lastUpdated\":"
        + System.currentTimeMillis() + "}}\n";
    return (text.substring(0, end) + mark + text.substring(end)).getBytes(StandardCharsets.UTF_8);
  }

  private void checkOperation(long target, CommitBody commit) throws Refused {
    if (!GUARDED.contains(commit.operation)) {
      throw refuse("operation", commit.operation + " is not guarded: a block holds one write (" + String.join(", ", GUARDED)
          + "); run it before the block or after it");
    }
    if (target <= claimedAt) {
      throw refuse("recreated", "version " + target + " of " + table + " is to be written, and the block began on version "
          + claimedAt + ": the table was dropped and recreated while the block was open");
    }
  }

  /**
   * Records what a settler could not know: of a table that does not exist what it will look like, of one whose schema or
   * properties change what it looked like before.
   *
   * <p>An empty log cannot be fenced by an empty commit: version 0 needs a schema. So whoever would settle this block later
   * and the block itself compete for one object. If the settler is first, this commit is never sent; if the note is, the
   * settler can fence with an empty table of the right shape.
   */
  private void note(CommitBody commit, Configuration conf) throws IOException {
    String actions = before.isEmpty() ? commit.creation.toString() : before;
    byte[] body = (actions + "{\"note\":{\"nonce\":\"" + nonce + "\"}}\n").getBytes(StandardCharsets.UTF_8);
    if (ConditionalPut.put(new Path(note), body, conf) != ConditionalPut.Outcome.LANDED) {
      shut("this write was settled by somebody else");
      throw refuse("fenced", "this write was settled by somebody else, nothing may be committed any more");
    }
    synchronized (this) {
      noted = true;
    }
  }

  /** The supervisor trusts this line: as long as it is missing, no commit was sent. So it is written first. */
  private void announce() throws IOException {
    if (!journal.isEmpty()) {
      // The line break before it keeps a line that a full disk has torn from swallowing this one.
      String line = "\n{\"event\":\"commit_passed\",\"atMs\":" + System.currentTimeMillis() + ",\"nonce\":\"" + nonce + "\"}\n";
      Files.write(Paths.get(journal), line.getBytes(StandardCharsets.UTF_8), StandardOpenOption.APPEND);
    }
  }

  synchronized void landed(long slot) {
    status = "landed";
    version = slot;
  }

  /** The slot holds something else: a fence of ours ends the block, anything else is for Delta to check and rebase. */
  void lost(Path slot, long target, Configuration conf) throws IOException {
    synchronized (this) {
      if (status.equals("in flight")) {
        status = "none";
      }
    }
    byte[] winner = ConditionalPut.read(slot.getFileSystem(conf), slot);
    if (winner != null) {
      checkFence(winner);
      seenUpTo = Math.max(seenUpTo, target);
    }
  }

  synchronized void unknown(IOException error) {
    status = "unknown";
    shut("whether the commit landed is not known: " + error);
  }

  private synchronized Refused refuse(String code, String message) {
    if (refusal.isEmpty()) {
      refusal = code + ": " + message;
    }
    return new Refused(code, message);
  }
}
