package io.soal.iceberg;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.relocated.com.google.common.collect.Sets;
import org.apache.iceberg.types.TypeUtil;
import org.apache.iceberg.util.SnapshotUtil;

/**
 * A table's own operations, for one commit of one block.
 *
 * <p>It adds to Iceberg's commit the attempt's mark, a table property that outlives the snapshot, and the requirement
 * that nobody has fenced the attempt with a reference of its name. Whenever another commit was first, Iceberg retries on
 * the table as it is then; {@link #commit} checks each try.
 */
final class Publication extends RowsOnly {
  /** Begins the name of a mark; the attempt's name follows. Its value: snapshot, rows, bytes, epoch milliseconds. */
  static final String MARK = "safewriter.";

  private static final Pattern MARKED = Pattern.compile("\\d+ \\d+ \\d+ (\\d{1,18})");
  private static final long MARKS_MS = TimeUnit.DAYS.toMillis(7);

  private final String target;
  private final String attempt;
  private final long untilMs;
  private final TableMetadata begun;
  private final Map<String, String> retries;
  private TableMetadata found;
  private TableMetadata shown;
  private volatile boolean sent;

  Publication(TableOperations table, String target, String attempt, long untilMs) {
    super(table, new OwnLists(table.io()));
    this.target = target;
    this.attempt = attempt;
    this.untilMs = untilMs;
    // Iceberg's default of four retries is too few beside seven other writers; only time limits a block.
    this.retries =
        Map.of(
            TableProperties.COMMIT_NUM_RETRIES, "10000",
            TableProperties.COMMIT_MAX_RETRY_WAIT_MS, "2000",
            TableProperties.COMMIT_TOTAL_RETRY_TIME_MS, String.valueOf(Math.max(1, untilMs - System.currentTimeMillis())));
    this.begun = current();
  }

  @Override
  public TableMetadata current() {
    return shown(table.current());
  }

  /** Iceberg calls this before each try. */
  @Override
  public TableMetadata refresh() {
    TableMetadata now;
    try {
      now = table.refresh();
    } catch (RuntimeException unread) { // "forbidden" and "no such table" tell nothing of a commit that was sent
      throw sent ? new CommitStateUnknownException(unread) : unread;
    }
    if (isPublished(now)) {
      // The catalog refused a second copy of a commit that has landed. If Iceberg applied it again, the rows would be
      // there twice. And only after this exception does Iceberg not clean up files that the table needs.
      throw new CommitStateUnknownException(new IllegalStateException(attempt + " is published already"));
    }
    return shown(now);
  }

  /** There are two witnesses: somebody may remove the mark, or a catalog may not keep it; and snapshots expire. */
  private boolean isPublished(TableMetadata now) {
    return now.properties().containsKey(MARK + attempt) || own(now).findAny().isPresent();
  }

  private Stream<Snapshot> own(TableMetadata now) {
    return now.snapshots().stream()
        .filter(one -> one.summary() != null && attempt.equals(one.summary().get(StagedTable.SUMMARY)));
  }

  /** Iceberg reads its retries from the table's properties: this block's stand there in memory only. */
  private synchronized TableMetadata shown(TableMetadata now) {
    if (now != found) {
      found = now;
      shown =
          TableMetadata.buildFrom(now)
              .setProperties(retries)
              .discardChanges()
              .withMetadataLocation(now.metadataFileLocation())
              .build();
    }
    return shown;
  }

  @Override
  public void commit(TableMetadata base, TableMetadata staged) {
    if (base != shown) {
      throw new CommitFailedException("%s has changed since it was read", target);
    }
    refuse(System.currentTimeMillis() > untilMs, "it is too late to begin a commit");
    refuse(base.ref(target) == null, "the branch is gone");
    refuse(base.ref(attempt) != null, "somebody has settled this attempt as rolled back while it was not running");
    boolean moved =
        base.ref(target).snapshotId() != begun.ref(target).snapshotId()
            || base.lastSequenceNumber() != begun.lastSequenceNumber();
    // Applied again, an operation takes the manifests of the one before it from its own memory, with the sequence numbers
    // and row ids of the first try: equality deletes of others would take these rows, and two rows would have one id.
    refuse(moved && added(staged).count() > 1, "others have committed, and the block has several statements");
    // A replacement may give a column another type under its old id: then nobody could read the table any more.
    TypeUtil.validateWriteSchema(base.schema(), begun.schema(), true, false);
    // On the table as it is, without this block's retries, so that the commit reverts no property of others.
    TableMetadata.Builder builder = TableMetadata.buildFrom(found);
    staged.changes().forEach(change -> change.applyTo(builder));
    builder.setProperties(Map.of(MARK + attempt, mark(base, staged))).removeProperties(outdated(base));
    // A REST catalog requires that a reference that a commit sets is as it was: here, that there is none.
    builder.setRef(attempt, SnapshotRef.tagBuilder(staged.ref(target).snapshotId()).build()).removeRef(attempt);
    send(builder.build());
  }

  /** Throws {@link CommitFailedException} only if the table, read after it, does not hold the commit. */
  private void send(TableMetadata changed) {
    sent = true;
    try {
      table.commit(found, changed);
    } catch (CommitFailedException refused) {
      refresh();
      throw refused;
    } catch (CommitStateUnknownException unknown) {
      throw unknown;
    } catch (RuntimeException error) { // Iceberg would delete the manifests of a commit that may have landed
      throw new CommitStateUnknownException(error);
    }
  }

  boolean isOf(TableOperations operations) {
    return table == operations;
  }

  /** Returns the attempt's mark as the catalog shows it now; null if it shows none. */
  String mark() {
    return table.refresh().properties().get(MARK + attempt);
  }

  /** Reads the snapshots that the target has got since the block began. */
  List<Snapshot> since() {
    return since(begun, refresh());
  }

  private void refuse(boolean refused, String reason) {
    ValidationException.check(!refused, "%s is not published to %s: %s", attempt, target, reason);
  }

  /** Throws if a statement has staged rows that the target does not show: for another branch, or to be published by id. */
  void refuseElsewhere(TableMetadata staged) {
    long head = staged.ref(target).snapshotId();
    if (!added(staged).allMatch(id -> SnapshotUtil.isAncestorOf(head, id, staged::snapshot))) {
      throw new UnsupportedOperationException(
          "a statement has written another branch than " + target + ", for which the block was opened");
    }
  }

  /** Returns the ids of the snapshots that the block has staged, one for each statement that writes rows. */
  static Stream<Long> added(TableMetadata staged) {
    return staged.changes().stream()
        .filter(MetadataUpdate.AddSnapshot.class::isInstance)
        .map(change -> ((MetadataUpdate.AddSnapshot) change).snapshot().snapshotId());
  }

  private String mark(TableMetadata base, TableMetadata staged) {
    long rows = 0;
    long bytes = 0;
    for (Snapshot snapshot : since(base, staged)) {
      rows += Long.parseLong(snapshot.summary().getOrDefault("added-records", "0"));
      bytes += Long.parseLong(snapshot.summary().getOrDefault("added-files-size", "0"));
    }
    return staged.ref(target).snapshotId() + " " + rows + " " + bytes + " " + System.currentTimeMillis();
  }

  /** Returns the snapshots on the target's branch that an earlier state of the table does not have. */
  private List<Snapshot> since(TableMetadata earlier, TableMetadata now) {
    List<Snapshot> added = new ArrayList<>();
    Long id = now.ref(target) == null ? null : Long.valueOf(now.ref(target).snapshotId());
    while (id != null && now.snapshot(id) != null && earlier.snapshot(id) == null) {
      added.add(now.snapshot(id));
      id = now.snapshot(id).parentId();
    }
    return added;
  }

  private static Set<String> outdated(TableMetadata base) {
    long since = System.currentTimeMillis() - MARKS_MS;
    return Sets.filter(
        base.properties().keySet(),
        name -> {
          Matcher mark = MARKED.matcher(base.properties().get(name));
          return name.startsWith(MARK) && mark.matches() && Long.parseLong(mark.group(1)) < since;
        });
  }
}
