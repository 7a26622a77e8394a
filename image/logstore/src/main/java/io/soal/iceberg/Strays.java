package io.soal.iceberg;

import io.soal.logstore.Journal;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.iceberg.DataOperations;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.events.CreateSnapshotEvent;
import org.apache.iceberg.events.Listeners;
import org.apache.spark.sql.SparkSession;

/**
 * The snapshots that the block's own thread or session commits to its table, and not through the block.
 *
 * <p>Iceberg tells of each snapshot that it has committed, on the thread that has committed it. So the witness does not
 * depend on what a statement writes into its snapshot: {@code add_files} and calls of Java sign nothing. A commit of
 * another session on another thread is another writer's.
 */
final class Strays {
  static {
    Listeners.register(Strays::tell, CreateSnapshotEvent.class); // there is no way to take it back
  }

  private final Thread thread = Thread.currentThread();
  private final Object session;
  private final String table;
  private final Supplier<List<Snapshot>> since;
  private final Journal journal;
  /** The snapshots of the block's session, and whether Iceberg has named the block's table. */
  private final Map<Long, Boolean> heard = new ConcurrentHashMap<>();
  /** The same of other sessions on the block's thread: other writers, unless the block itself has written nothing. */
  private final Map<Long, Boolean> beside = new ConcurrentHashMap<>();

  /**
   * @param table the table's name, without that of its catalog
   * @param since reads the snapshots that the block's target has got since the block began
   * @param journal gets a line for each stray: the supervisor reads it if the job is killed before it can say so
   */
  Strays(Object session, String table, Supplier<List<Snapshot>> since, Journal journal) {
    this.session = session;
    this.table = table;
    this.since = since;
    this.journal = journal;
  }

  private static void tell(CreateSnapshotEvent event) {
    // A block's own statements commit to memory. A compaction changes no row, so a retry may do it again.
    boolean counts = !DataOperations.REPLACE.equals(event.operation())
        && (event.summary() == null || !event.summary().containsKey(StagedTable.SUMMARY));
    if (counts) {
      StagingCatalog.OPEN.values().forEach(block -> block.strays().hear(event));
    }
  }

  private void hear(CreateSnapshotEvent event) {
    Object active = SparkSession.getActiveSession().getOrElse(() -> null);
    boolean here = Thread.currentThread() == thread;
    boolean named = event.tableName() != null && event.tableName().endsWith("." + table);
    if (active != session && (active != null || !here)) { // a call into Iceberg's own classes has no session
      if (here) {
        beside.put(event.snapshotId(), named);
      }
      return;
    }
    heard.put(event.snapshotId(), named);
    String reason = named ? found(false) : null; // the table is not read for each commit to another one
    if (reason != null) {
      try {
        journal.tell("stray", reason);
      } catch (IOException e) {
        throw new UncheckedIOException(e); // Iceberg logs it; the block itself knows of the stray all the same
      }
    }
  }

  /**
   * Says which snapshots are strays; null if there are none.
   *
   * @param isIdle whether the block has written nothing: then a statement of another session on its thread, as of a frame
   *     in {@code foreachBatch}, was to be its own
   */
  String found(boolean isIdle) {
    Map<Long, Boolean> heard = new HashMap<>(this.heard);
    if (isIdle) {
      heard.putAll(beside);
    }
    if (heard.isEmpty()) {
      return null;
    }
    List<Long> strays;
    try {
      strays = since.get().stream().map(Snapshot::snapshotId).filter(heard::containsKey).toList();
    } catch (RuntimeException unread) { // the table's name is the only witness then
      strays = heard.keySet().stream().filter(heard::get).toList();
    }
    if (strays.isEmpty()) {
      return null;
    }
    String ids = strays.stream().map(String::valueOf).sorted().collect(Collectors.joining(", "));
    return "a statement of the block has written snapshot " + ids + " past the block, by the table's own name";
  }
}
