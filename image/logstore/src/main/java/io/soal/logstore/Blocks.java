package io.soal.logstore;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * The blocks of this JVM, open and over: finds the gate that a commit has to pass, and refuses a commit that
 * belongs to no block but looks as if it came from one.
 *
 * <p>While a block is open on a table, this process writes rows to that table through blocks only. A statement on another
 * thread, or of a Spark that was restarted inside the block, cannot be told from the block's own: if it passed
 * unguarded, the block would be rolled back, and its retry would write the rows once more.
 */
final class Blocks {
  private static final Pattern PREFIX = Pattern.compile("sw-[0-9a-f]{12}-\\d+-[0-9a-f]{16}-");
  private static final int ENDED_MAX = 100_000;

  /** Operations that add files which were in the table before. */
  private static final Set<String> BRING_BACK = Set.of(
      "RESTORE", "CLONE", "CONVERT", "COMPUTE STATS", "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL");

  private final Map<String, List<Gate>> open = new ConcurrentHashMap<>();

  /**
   * Blocks that are over, by table and file prefix. A statement can outlive its block (a thread of the user's, an
   * interrupt); what it would commit was settled, and perhaps deleted, without it.
   */
  private final Map<String, Block> ended = Bounded.map(ENDED_MAX);

  /** For each table the executions that began in a block of it and ran on at its end: a DELETE brings in no file. */
  private final Map<String, Map<Long, Block>> left = new ConcurrentHashMap<>();

  /** Begins a block; false: one is open on that session already. */
  synchronized boolean open(Gate gate, Object session) {
    if (busy(session)) {
      return false;
    }
    open.computeIfAbsent(gate.table(), table -> new CopyOnWriteArrayList<>()).add(gate);
    return true;
  }

  /** @param executions those that run now; asked here, so that no other block ends between the answer and its use */
  synchronized void close(Gate gate, Supplier<Set<Long>> executions) {
    Set<Long> running = executions.get();
    ended.put(gate.table() + "/" + gate.block().filePrefix(), gate.block());
    left.values().forEach(outlived -> outlived.keySet().retainAll(running));
    left.values().removeIf(Map::isEmpty);
    Set<Long> outliving = new HashSet<>(running);
    outliving.removeAll(gate.ranBefore());
    for (Long execution : outliving) {
      left.computeIfAbsent(gate.table(), table -> new ConcurrentHashMap<>()).put(execution, gate.block());
    }
    open.computeIfPresent(gate.table(), (table, gates) -> {
      gates.remove(gate);
      return gates.isEmpty() ? null : gates;
    });
  }

  boolean isEmpty() {
    return open.isEmpty();
  }

  /** Whether a block is open on a session, whatever object stands for it in Python. */
  boolean busy(Object session) {
    return gates().stream().anyMatch(gate -> gate.isOf(session));
  }

  /** Returns the gate that a commit has to pass, or null if it belongs to no block; throws {@link Refused}. */
  Gate find(String table, byte[] body, Supplier<Statement> current) throws IOException {
    if (open.isEmpty() && ended.isEmpty()) {
      return null;
    }
    Statement statement = current.get();
    for (Gate gate : open.getOrDefault(table, List.of())) {
      if (gate.owns(statement)) {
        return gate;
      }
    }
    CommitBody commit = CommitBody.parse(body);
    Set<String> prefixes = commit.newPrefixes(PREFIX);
    Refused first = null;
    for (Gate gate : gates()) { // each gets the refusal, since nobody knows whose statement it was
      Refused refused = gate.meet(table, statement, commit.writesRows(), prefixes);
      first = first == null ? refused : first;
    }
    if (first != null) {
      throw first;
    }
    refuseLeftovers(table, commit, statement, prefixes);
    return null;
  }

  private void refuseLeftovers(String table, CommitBody commit, Statement statement, Set<String> prefixes)
      throws Refused {
    Block over = commit.writesRows() ? statement.blockIn(left.getOrDefault(table, Map.of())) : null;
    if (over == null && !BRING_BACK.contains(commit.operation)) {
      over = prefixes.stream()
          .map(prefix -> ended.get(table + "/" + prefix)).filter(Objects::nonNull).findFirst().orElse(null);
    }
    if (over != null) {
      Refused refused = new Refused("over", "the SafeWriter block of this statement is over, and its write was settled"
          + " without it; nothing of it may be committed any more");
      over.lines().tellRefused(refused.reason);
      throw refused;
    }
  }

  private List<Gate> gates() {
    List<Gate> all = new ArrayList<>();
    open.values().forEach(all::addAll);
    return all;
  }
}
