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
 * The strays of a block: snapshots that its own thread or session commits to its table past the block.
 *
 * <p>Iceberg notifies listeners of each commit on the committing thread. So detection does not depend on what a
 * statement writes into its snapshot's summary: {@code add_files} and direct Java calls leave no name there. A commit
 * by another session on another thread is another writer's.
 */
final class Strays {
  static {
    Listeners.register(Strays::tell, CreateSnapshotEvent.class); // cannot be unregistered
  }

  private final Thread thread = Thread.currentThread();
  private final Object session;
  private final String table;
  private final Supplier<List<Snapshot>> since;
  private final Journal journal;
  /** Ids of the snapshots that the block's session committed; true if the event names the block's table. */
  private final Map<Long, Boolean> heard = new ConcurrentHashMap<>();
  /** The same for other sessions on the block's thread: other writers, unless the block itself has written nothing. */
  private final Map<Long, Boolean> beside = new ConcurrentHashMap<>();

  /**
   * @param table the table's name, without its catalog
   * @param since returns the snapshots added to the block's target since the block began
   * @param journal gets a line for each stray: the supervisor reads it if the job is killed before it reports
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
    if (active != session && (active != null || !here)) { // a direct call of Iceberg's classes has no active session
      if (here) {
        beside.put(event.snapshotId(), named);
      }
      return;
    }
    heard.put(event.snapshotId(), named);
    String reason = named ? found(false) : null; // do not read the table for commits to others
    if (reason != null) {
      try {
        journal.tell("stray", reason);
      } catch (IOException e) {
        throw new UncheckedIOException(e); // Iceberg logs it; the block knows the stray from memory
      }
    }
  }

  /**
   * Returns a message that names the strays; null if there are none.
   *
   * @param isIdle whether the block has written nothing: then a statement of another session on its thread (for example
   *     a frame of {@code foreachBatch}) was meant for the block
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
    } catch (RuntimeException unread) { // then only the event's table name decides
      strays = heard.keySet().stream().filter(heard::get).toList();
    }
    if (strays.isEmpty()) {
      return null;
    }
    String ids = strays.stream().map(String::valueOf).sorted().collect(Collectors.joining(", "));
    return "a statement of the block has written snapshot " + ids + " past the block, by the table's own name";
  }
}
