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
 * The open and closed blocks of this JVM. Finds the gate that a commit has to pass, and refuses a commit that belongs
 * to no block but looks as if it came from one.
 *
 * <p>While a block is open on a table, this process may write rows to that table through blocks only. A statement on
 * another thread, or of a Spark restarted inside the block, may be the block's own: if it passed unguarded, the block
 * would be rolled back, and its retry would write the rows again.
 */
final class Blocks {
  private static final Pattern PREFIX = Pattern.compile("sw-[0-9a-f]{32}-\\d+-[0-9a-f]{16}-");
  private static final int ENDED_MAX = 100_000;

  /** Operations that may add files that were in the table before. */
  private static final Set<String> BRING_BACK = Set.of(
      "RESTORE", "CLONE", "CONVERT", "COMPUTE STATS", "ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL");

  private final Map<String, List<Gate>> open = new ConcurrentHashMap<>();

  /**
   * Closed blocks, by table and file prefix. A statement can outlive its block (on a user's thread, after an
   * interrupt); the write is then settled without it, and its files may be deleted.
   */
  private final Map<String, Block> ended = Bounded.map(ENDED_MAX);

  /** By table: the executions that outlived their block. A DELETE adds no file, so its prefix would not show it. */
  private final Map<String, Map<Long, Block>> left = new ConcurrentHashMap<>();

  /** Opens a block; returns false if one is open on that session already. */
  synchronized boolean open(Gate gate, Object session) {
    if (busy(session)) {
      return false;
    }
    open.computeIfAbsent(gate.table(), table -> new CopyOnWriteArrayList<>()).add(gate);
    return true;
  }

  /** @param executions returns the running ones; called under this lock, so that no other block closes meanwhile */
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

  /** Whether a block is open on a session, whichever Python object wraps it. */
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
    for (Gate gate : gates()) { // all gates record the refusal: the statement may be any block's
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
