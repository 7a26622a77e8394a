package io.soal.logstore;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/**
 * The check that every commit to a guarded table passes, on the first try and on each rebase.
 *
 * <p>A gate belongs to one block: one thread and one Spark session, one table, one (write key, epoch). It lets at most
 * one commit land, none after the latest start, and knows afterwards whether that commit landed. The guard drives it
 * from Python, on the block's thread:
 *
 * <pre>
 * Gate gate = Gate.open(session, "{\"table\": …, \"key\": …}");
 * gate.shut("deadline"); gate.seen(); gate.landed(); gate.close();
 * </pre>
 *
 * <p>The gate itself adds the block's transaction action to the commit, and looks for a fence of the same key in every
 * version that it has not seen. Delta can do both, but it reconstructs the table's state to read the stored
 * transactions, which costs more than the rest of the guard.
 *
 * <p>Callers may rely on one claim only: if no commit passed, none can land. A commit that S3 denied has not passed.
 */
public final class Gate {
  /** The version of the protocol between this class and the guard; both sides must have the same. */
  public static final int PROTOCOL = 10;

  /** The blocks of this JVM. */
  static final Blocks BLOCKS = new Blocks();

  /** The reason why a skipped block's gate is shut. The guard matches these words. */
  static final String SKIPPED = "this write was committed by an earlier attempt";

  private static final ObjectMapper JSON = new ObjectMapper();

  /** Up to this wait, the read in flight ends sooner than a new one would. */
  private static final long READ_BACK_MS = 2_000;

  private final Blocks blocks;
  private final Set<Long> ranBefore;
  private final WeakReference<Object> session;
  private final WeakReference<Thread> thread;
  private final Block block;
  private final Settlers settlers;

  private String status = "none";
  private String refusal = "";
  private String shutBy = "";
  private String stray = "";
  private boolean passed;
  private int tries;
  private long version = -1;
  private BlockSettings settings;
  private boolean outlived;
  private boolean closed;
  private CompletableFuture<byte[]> landed = CompletableFuture.completedFuture(null);

  private Gate(Blocks blocks, Set<Long> ranBefore, Object session, Block block) {
    this.blocks = blocks;
    this.ranBefore = ranBefore;
    this.session = new WeakReference<>(session);
    this.thread = new WeakReference<>(Thread.currentThread());
    this.block = block;
    this.settlers = new Settlers(block);
  }

  public static int protocol() {
    return PROTOCOL;
  }

  /** Whether a block is open in this JVM, perhaps of a Python process that has died. */
  public static boolean isAnyOpen() {
    return !BLOCKS.isEmpty();
  }

  /** Opens the gate of one block and applies its session settings. Call it on the thread that will write. */
  public static Gate open(SparkSession session, String block) throws IOException {
    Block parsed = Block.parse(block);
    Gate gate = open(BLOCKS, Statement.running(), session, parsed);
    try {
      gate.settings = BlockSettings.of(session, parsed);
    } catch (RuntimeException error) {
      gate.close();
      throw error;
    }
    return gate;
  }

  /** @param running the executions that already run: none of them is the block's */
  static Gate open(Blocks blocks, Set<Long> running, Object session, Block block) {
    Gate gate = new Gate(blocks, running, session, block);
    if (!blocks.open(gate, session)) {
      throw new IllegalStateException("another SafeWriter block is open on this Spark session");
    }
    if (block.skipped()) {
      gate.shut(SKIPPED);
    }
    return gate;
  }

  /**
   * Whether a statement that the session began in the block still runs, or ran when the block closed: it may yet use a
   * file that it wrote.
   */
  public boolean isOutlived() {
    return outlived || !closed && Statement.runsOn(session.get(), block.filePrefix(), ranBefore);
  }

  /** Whether a block is open on a session, whichever Python object wraps it. */
  public static boolean busy(SparkSession session) {
    return BLOCKS.busy(session);
  }

  /**
   * Closes the block and restores its session. Other writes to the table continue, as conditional PUTs; the block's own
   * are refused.
   */
  public void close() {
    try {
      close(Statement::running);
    } finally {
      if (settings != null) {
        settings.restore();
      }
      outlived = Statement.runsOn(session.get(), block.filePrefix(), ranBefore); // a later statement is not the block's
      closed = true;
    }
  }

  void close(Supplier<Set<Long>> running) {
    shut("the block is over");
    blocks.close(this, running);
  }

  /** Refuses every commit from now on; a second call does not change the reason. */
  public synchronized void shut(String reason) {
    if (shutBy.isEmpty()) {
      shutBy = reason;
    }
  }

  /**
   * Returns the record of the block's commit as a JSON object: status (none, in flight, landed or unknown); passed,
   * whether a commit was sent that S3 has not denied; tries, how often one was sent, rebases included; version, landed
   * or last sent, -1: none; refusal, code and message of the first refused statement that writes rows, or empty; stray,
   * another table that the block's thread wrote, or empty; noted, whether the gate put a note into the checkpoint
   * bucket.
   */
  public synchronized String seen() {
    return JSON.createObjectNode()
        .put("status", status)
        .put("passed", passed)
        .put("tries", tries)
        .put("version", version)
        .put("refusal", refusal)
        .put("stray", stray)
        .put("noted", settlers.noted())
        .toString();
  }

  /**
   * Returns the version that landed, read back from the table while Delta does its post-commit work.
   *
   * @return a JSON object: body, its commitInfo and txn actions; bytes, the size of the files that it adds. Null if
   *     nothing has landed, or the read failed or took too long
   */
  public String landed() throws IOException {
    CompletableFuture<byte[]> reading;
    synchronized (this) {
      reading = landed;
    }
    byte[] body = reading.completeOnTimeout(null, READ_BACK_MS, TimeUnit.MILLISECONDS).exceptionally(error -> null).join();
    if (body == null) {
      return null;
    }
    CommitBody commit = CommitBody.parse(body);
    return JSON.createObjectNode().put("body", commit.withoutFiles()).put("bytes", commit.addedBytes()).toString();
  }

  String table() {
    return block.table();
  }

  Block block() {
    return block;
  }

  Set<Long> ranBefore() {
    return ranBefore;
  }

  boolean isOf(Object other) {
    return session.get() == other;
  }

  /** Whether the statement is the block's own: on the thread and the session that opened the block. */
  boolean owns(Statement statement) {
    return statement.isOn(thread.get()) && statement.isOf(session.get());
  }

  /**
   * Checks a commit that {@link #owns} does not accept. On the block's table it is refused if it may still be the
   * block's: its files have the block's prefix, or it writes rows and began while the block was open.
   *
   * @return the refusal, or null
   */
  Refused meet(String target, Statement statement, boolean writesRows, Set<String> prefixes) {
    if (!block.table().equals(target)) {
      if (statement.isOn(thread.get())) {
        strayed(target);
      }
      return null;
    }
    if (!prefixes.contains(block.filePrefix()) && (!writesRows || statement.isAmong(ranBefore))) {
      return null;
    }
    if (statement.isOn(thread.get())) {
      return refuse("session", "this write comes from the block's own code, but from another Spark session: open the block"
          + " with the session of the statement (frame.sparkSession for frame.write, that of DeltaTable.forPath for a"
          + " merge, spark for spark.sql). Blocks of several threads need a session each, which also makes their rows:"
          + " session = spark.newSession(), then session.read. Do not restart Spark in a block");
    }
    return refuse("thread", "a SafeWriter block is open on " + block.table() + ", and this write comes from another thread"
        + " than the one that opened it; write in that thread, or open a block of its own there, on a session of its own."
        + " (A statement that was interrupted takes its thread with it: leave the block then, and begin a new one)");
  }

  private synchronized void strayed(String other) {
    stray = other;
  }

  /** Sends a commit of the block if the checks pass, and records the outcome. */
  ObjectStore.Outcome commit(Path slot, long target, byte[] body, ObjectStore objects) throws IOException {
    boolean passedBefore = passed();
    byte[] sent = pass(slot, target, body, objects);
    ObjectStore.Outcome outcome;
    try {
      outcome = objects.put(slot, sent);
    } catch (ObjectStore.Denied error) {
      throw denied(error, passedBefore);
    } catch (IOException error) {
      unknown(error);
      throw error;
    }
    boolean done = outcome == ObjectStore.Outcome.LANDED;
    synchronized (this) {
      status = done ? "landed" : "none";
      landed = done ? objects.readLater(slot) : landed;
    }
    if (done) {
      LastVersions.landed(slot, target, block.key());
    }
    if (!done) {
      try { // our fence ends the block; Delta checks anything else and rebases
        settlers.lookAt(slot, target, objects);
      } catch (Refused settled) {
        throw end(settled);
      }
    }
    return outcome;
  }

  /** Returns the commit to send, or throws {@link Refused}. */
  private byte[] pass(Path slot, long target, byte[] body, ObjectStore objects) throws IOException {
    CommitBody commit = CommitBody.parse(body);
    check(target, commit);
    try {
      settlers.lookBefore(slot, target, objects);
      settlers.note(commit, objects);
    } catch (Refused settled) {
      throw end(settled);
    }
    synchronized (this) {
      check(target, commit); // the watchdog may have shut the gate meanwhile
      block.announce();
      tries++;
      passed = true;
      status = "in flight";
      version = target;
    }
    return block.withTransaction(body);
  }

  private synchronized void check(long target, CommitBody commit) throws Refused {
    if (!commit.writesRows()) {
      Refused refused = new Refused("operation", commit.operation + " is not guarded: a block holds one write ("
          + String.join(", ", CommitBody.GUARDED) + "); run it before the block or after it");
      // Refusing any other operation, such as OPTIMIZE, leaves no row out, so it is not remembered.
      throw CommitBody.CHANGE_ROWS.contains(commit.operation) ? remembered(refused) : refused;
    }
    if (!shutBy.isEmpty()) {
      throw refuse("shut", "no commit may start any more: " + shutBy);
    }
    if (block.latestStartMs() > 0 && System.currentTimeMillis() > block.latestStartMs()) {
      throw refuse("late", "the deadline is too near for a commit to start");
    }
    if (status.equals("landed") || status.equals("in flight")) {
      throw refuse("second", "this block's commit is version " + version + " already; a block holds one commit. Create the"
          + " table before the block; give each statement a block and a step of its own (SafeWriter(…, step=\"…\"))");
    }
    checkTable(target, commit);
  }

  private void checkTable(long target, CommitBody commit) throws Refused {
    if (target <= block.claimedAt()) {
      throw refuse("recreated", "version " + target + " of " + block.table() + " is to be written, and the block began on"
          + " version " + block.claimedAt() + ": the table was dropped and recreated while the block was open");
    }
    String obstacle = block.undoable() ? commit.undoObstacle(block.creates()) : null;
    if (obstacle != null) {
      throw refuse("undo", "this " + commit.operation + " could not be taken back, since " + obstacle
          + ", so commit_point='success' cannot be kept; use commit_point='write', or check the rows before the write");
    }
  }

  private synchronized boolean passed() {
    return passed;
  }

  /** Resets `passed`: the denied commit can never land. The journal keeps its line. */
  private synchronized Refused denied(ObjectStore.Denied error, boolean passedBefore) {
    status = "none";
    passed = passedBefore;
    Refused refused = refuse("denied", error.getMessage());
    refused.initCause(error);
    return refused;
  }

  private synchronized void unknown(IOException error) {
    status = "unknown";
    shut("whether the commit landed is not known: " + error);
  }

  private Refused end(Refused settled) {
    shut(settled.reason);
    return remembered(settled);
  }

  private Refused refuse(String code, String message) {
    return remembered(new Refused(code, message));
  }

  private synchronized Refused remembered(Refused refused) {
    if (refusal.isEmpty()) {
      refusal = refused.reason;
    }
    block.lines().tellRefused(refused.reason);
    return refused;
  }
}
