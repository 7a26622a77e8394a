package io.soal.logstore;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.Locale;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/**
 * The place that every commit of a guarded table passes, first try and rebase alike.
 *
 * <p>A gate belongs to one block: one thread and one Spark session, one table, one (write key, epoch). It lets exactly one
 * commit through, not after the latest start, and knows afterwards whether that commit landed. The guard drives it from
 * Python, on the block's thread:
 *
 * <pre>
 * Gate gate = Gate.open(session, "{\"table\": …, \"key\": …}");
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
  public static final int PROTOCOL = 6;

  /** The blocks of this Java machine. */
  static final Blocks BLOCKS = new Blocks();

  private final Blocks blocks;
  private final Set<Long> ranBefore;
  private final WeakReference<Object> session;
  private final WeakReference<Thread> thread;
  private final Block block;

  private String status = "none";
  private String refusal = "";
  private String shutBy = "";
  private String stray = "";
  private boolean noted;
  private int tries;
  private long version = -1;
  private long seenUpTo;

  private Gate(Blocks blocks, Set<Long> ranBefore, Object session, Block block) {
    this.blocks = blocks;
    this.ranBefore = ranBefore;
    this.session = new WeakReference<>(session);
    this.thread = new WeakReference<>(Thread.currentThread());
    this.block = block;
    this.seenUpTo = block.claimedAt();
  }

  public static int protocol() {
    return PROTOCOL;
  }

  /** Opens the gate of one block, on the thread that is going to write. */
  public static Gate open(SparkSession session, String block) throws IOException {
    return open(BLOCKS, Statement.running(), session, Block.parse(block));
  }

  /** @param running the executions that run already: none of them is the block's */
  static Gate open(Blocks blocks, Set<Long> running, Object session, Block block) {
    Gate gate = new Gate(blocks, running, session, block);
    if (!blocks.open(gate, session)) {
      throw new IllegalStateException("another SafeWriter block is open on this Spark session");
    }
    return gate;
  }

  /** Whether a block is open on a session, whatever object stands for it in Python. */
  public static boolean busy(SparkSession session) {
    return BLOCKS.busy(session);
  }

  /** Ends the block: other writes of the table go on, still conditionally; what is left of the block's own does not. */
  public void close() {
    close(Statement::running);
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

  /** One of none, in flight, landed, unknown. */
  public synchronized String status() {
    return status;
  }

  /** Whether a commit of this block was ever sent. */
  public synchronized boolean passed() {
    return tries > 0;
  }

  /** How often a commit of this block was sent, rebases included. */
  public synchronized int tries() {
    return tries;
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

  /** Another table that was written where the block's own should have been; or nothing. */
  public synchronized String stray() {
    return stray;
  }

  String table() {
    return block.table();
  }

  String filePrefix() {
    return block.filePrefix();
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
   * Meets a commit that is not the block's own. One of the same table is refused if it may be the block's after all: it
   * bears the block's name, or it writes rows and began while the block was open.
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

  /** Sends a commit of the block, if it may be sent, and remembers what became of it. */
  ObjectStore.Outcome commit(Path slot, long target, byte[] body, ObjectStore objects) throws IOException {
    byte[] sent = pass(slot, target, body, objects);
    ObjectStore.Outcome outcome;
    try {
      outcome = objects.put(slot, sent);
    } catch (IOException error) {
      unknown(error);
      throw error;
    }
    if (outcome == ObjectStore.Outcome.LANDED) {
      landed(target);
    } else {
      lost(slot, target, objects);
    }
    return outcome;
  }

  /** Lets one commit through or throws {@link Refused}; returns the commit as it is to be sent. */
  private byte[] pass(Path slot, long target, byte[] body, ObjectStore objects) throws IOException {
    CommitBody commit = CommitBody.parse(body);
    check(target, commit);
    lookForFence(slot, target, objects);
    if ((block.before().isEmpty() || commit.changesMetadata) && !noted) {
      note(commit, objects);
    }
    synchronized (this) {
      check(target, commit); // the watchdog may have shut the gate meanwhile
      announce();
      tries++;
      status = "in flight";
      version = target;
    }
    return marked(body);
  }

  private synchronized void check(long target, CommitBody commit) throws Refused {
    if (!shutBy.isEmpty()) {
      throw refuse("shut", "no commit may start any more: " + shutBy);
    }
    if (block.latestStartMs() > 0 && System.currentTimeMillis() > block.latestStartMs()) {
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
  private void lookForFence(Path slot, long target, ObjectStore objects) throws IOException {
    for (long between = seenUpTo + 1; between < target; between++) {
      Path path = new Path(slot.getParent(), String.format(Locale.ROOT, "%020d.json", between));
      byte[] body = objects.read(path);
      if (body == null) {
        shut("version " + between + " is gone");
        throw refuse("gap", path + " is gone, so whether this write was settled cannot be told");
      }
      checkFence(body);
      seenUpTo = between;
    }
  }

  private void checkFence(byte[] body) throws IOException {
    if (CommitBody.parse(body).transactions.getOrDefault(block.key(), -1L) >= block.epoch()) {
      shut("this write was settled by somebody else");
      throw refuse("fenced", "this write was settled by somebody else, nothing may be committed any more");
    }
  }

  /** The transaction action goes behind the first line, which is commitInfo and must stay the first. */
  private byte[] marked(byte[] body) {
    String text = new String(body, StandardCharsets.UTF_8);
    int end = text.indexOf('\n') + 1;
    String mark = "{\"txn\":{\"appId\":\"" + block.key() + "\",\"version\":" + block.epoch() + ",\"lastUpdated\":"
        + System.currentTimeMillis() + "}}\n";
    return (text.substring(0, end) + mark + text.substring(end)).getBytes(StandardCharsets.UTF_8);
  }

  private void checkOperation(long target, CommitBody commit) throws Refused {
    if (!commit.writesRows()) {
      throw refuse("operation", commit.operation + " is not guarded: a block holds one write ("
          + String.join(", ", CommitBody.GUARDED) + "); run it before the block or after it");
    }
    if (target <= block.claimedAt()) {
      throw refuse("recreated", "version " + target + " of " + block.table() + " is to be written, and the block began on"
          + " version " + block.claimedAt() + ": the table was dropped and recreated while the block was open");
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
  private void note(CommitBody commit, ObjectStore objects) throws IOException {
    String actions = block.before().isEmpty() ? commit.creation.toString() : block.before();
    byte[] body = (actions + "{\"note\":{\"nonce\":\"" + block.nonce() + "\"}}\n").getBytes(StandardCharsets.UTF_8);
    if (objects.put(new Path(block.note()), body) != ObjectStore.Outcome.LANDED) {
      shut("this write was settled by somebody else");
      throw refuse("fenced", "this write was settled by somebody else, nothing may be committed any more");
    }
    synchronized (this) {
      noted = true;
    }
  }

  /** The supervisor trusts this line: as long as it is missing, no commit was sent. So it is written first. */
  private void announce() throws IOException {
    if (!block.journal().isEmpty()) {
      // The line break before it keeps a line that a full disk has torn from swallowing this one.
      String line = "\n{\"event\":\"commit_passed\",\"atMs\":" + System.currentTimeMillis() + ",\"nonce\":\""
          + block.nonce() + "\"}\n";
      Files.write(Paths.get(block.journal()), line.getBytes(StandardCharsets.UTF_8), StandardOpenOption.APPEND);
    }
  }

  private synchronized void landed(long slot) {
    status = "landed";
    version = slot;
  }

  /** The slot holds something else: a fence of ours ends the block, anything else is for Delta to check and rebase. */
  private void lost(Path slot, long target, ObjectStore objects) throws IOException {
    synchronized (this) {
      status = "none";
    }
    byte[] winner = objects.read(slot);
    if (winner != null) {
      checkFence(winner);
      seenUpTo = target;
    }
  }

  private synchronized void unknown(IOException error) {
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
