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
 * The check that every commit of a guarded table passes, first try and rebase alike.
 *
 * <p>A gate belongs to one block: one thread and one Spark session, one table, one (write key, epoch). It lets exactly one
 * commit through, not after the latest start, and knows afterwards whether that commit landed. The guard drives it from
 * Python, on the block's thread:
 *
 * <pre>
 * Gate gate = Gate.open(session, "{\"table\": …, \"key\": …}");
 * gate.shut("deadline"); gate.seen(); gate.landed(); gate.close();
 * </pre>
 *
 * <p>The gate puts the block's transaction action into the commit itself, and looks for a fence of the same key in every
 * version that it has not seen. Delta can do both, but to know the stored transactions it reconstructs the table's state,
 * which costs more than all the rest of the guard.
 *
 * <p>A caller may rely on only one statement of a gate about the table: if no commit ever passed, none can land. One that
 * S3 has denied has not passed.
 */
public final class Gate {
  /** The protocol between this class and the guard; both sides must name the same number. */
  public static final int PROTOCOL = 9;

  /** The blocks of this JVM. */
  static final Blocks BLOCKS = new Blocks();

  /** The reason for which the gate of a skipped block is shut. The guard knows it by these words. */
  static final String SKIPPED = "this write was committed by an earlier attempt";

  private static final ObjectMapper JSON = new ObjectMapper();

  /** Within it the read that is on its way ends sooner than a second one would. */
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

  /** Whether a block is open in this JVM: the process that has opened it may have ended without a word. */
  public static boolean isAnyOpen() {
    return !BLOCKS.isEmpty();
  }

  /** Opens the gate of one block, on the thread that is going to write, and marks its session. */
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

  /** @param running the executions that run already: none of them is the block's */
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
   * Whether a statement of the session that began while the block was open still runs, or ran when the block was closed: it
   * may be about to use a file that it wrote.
   */
  public boolean isOutlived() {
    return outlived || !closed && Statement.runsOn(session.get(), block.filePrefix(), ranBefore);
  }

  /** Whether a block is open on a session, whatever object stands for it in Python. */
  public static boolean busy(SparkSession session) {
    return BLOCKS.busy(session);
  }

  /**
   * Ends the block, and puts its session back: other writes of the table continue, still conditionally; the block's own
   * may not.
   */
  public void close() {
    try {
      close(Statement::running);
    } finally {
      if (settings != null) {
        settings.restore();
      }
      outlived = Statement.runsOn(session.get(), block.filePrefix(), ranBefore); // one that begins now has nothing of the block
      closed = true;
    }
  }

  void close(Supplier<Set<Long>> running) {
    shut("the block is over");
    blocks.close(this, running);
  }

  /** Lets nothing through from now on; the first reason stays. */
  public synchronized void shut(String reason) {
    if (shutBy.isEmpty()) {
      shutBy = reason;
    }
  }

  /**
   * The record of the block's commit, as a JSON object: status, which is one of none, in flight, landed, unknown; passed,
   * whether a commit was ever sent that S3 has not denied; tries, how often a commit was sent, rebases included; version, of the one that landed or was last sent, -1: none; refusal,
   * code and message of the first refused statement that writes rows, or nothing; stray, another table that was written in place of the block's own, or
   * nothing; noted, whether a note was put into the checkpoint bucket.
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
   * The version that landed, as the table holds it: the gate reads it while Delta does its own work after the commit.
   *
   * @return a JSON object: body, its actions without those of files, which may be many; bytes, the size of the files that
   *     it adds. Null if nothing has landed, or if it could not be read
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

  /** The block's own statements come from the thread that opened it, on the session that it was opened with. */
  boolean owns(Statement statement) {
    return statement.isOn(thread.get()) && statement.isOf(session.get());
  }

  /**
   * Checks a commit that is not the block's own. One of the same table is refused if it may be the block's after all:
   * it has the block's name, or it writes rows and began while the block was open.
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
      return refuse("session", "this write comes from the block's own code, but from another Spark session; open the block"
          + " with the session of the statement (frame.sparkSession for frame.write, that of DeltaTable.forPath for a"
          + " merge, spark for spark.sql), and do not restart Spark in it");
    }
    return refuse("thread", "a SafeWriter block is open on " + block.table() + ", and this write comes from another thread"
        + " than the one that opened it; write in that thread, or open a block of its own there, on a session of its own."
        + " (A statement that was interrupted takes its thread with it: leave the block then, and begin a new one)");
  }

  private synchronized void strayed(String other) {
    stray = other;
  }

  /** Sends a commit of the block, if it may be sent, and records the outcome. */
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
      try { // a fence of ours ends the block, anything else is for Delta to check and rebase
        settlers.lookAt(slot, target, objects);
      } catch (Refused settled) {
        throw end(settled);
      }
    }
    return outcome;
  }

  /** Lets one commit through or throws {@link Refused}; returns the commit to send. */
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
      // Without any other operation, such as OPTIMIZE, the block's write is whole.
      throw CommitBody.CHANGE_ROWS.contains(commit.operation) ? remembered(refused) : refused;
    }
    if (!shutBy.isEmpty()) {
      throw refuse("shut", "no commit may start any more: " + shutBy);
    }
    if (block.latestStartMs() > 0 && System.currentTimeMillis() > block.latestStartMs()) {
      throw refuse("late", "the deadline is too near for a commit to start");
    }
    if (status.equals("landed") || status.equals("in flight")) {
      throw refuse("second", "this block's commit is version " + version + " already; a block holds one commit");
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

  /** Takes back that a commit has passed: this one can never land. The journal keeps its line. */
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
