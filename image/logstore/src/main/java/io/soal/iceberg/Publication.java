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
 * The table operations of one commit of one block.
 *
 * <p>It adds two things to Iceberg's commit: the attempt's mark, a table property that outlives the snapshot, and the
 * requirement that no reference of the attempt's name (a fence) exists. If another commit was first, Iceberg retries on
 * the new state of the table; {@link #commit} checks each try.
 */
final class Publication extends RowsOnly {
  /** The prefix of a mark's name, before the attempt's name. Its value: snapshot, rows, bytes, epoch milliseconds. */
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
    } catch (RuntimeException unread) { // "forbidden" and "no such table" do not say whether a sent commit landed
      throw sent ? new CommitStateUnknownException(unread) : unread;
    }
    if (isPublished(now)) {
      // The commit has landed, and the catalog refused a second copy. If Iceberg applied it again, the rows would be
      // there twice. After any other exception Iceberg deletes files that the table needs.
      throw new CommitStateUnknownException(new IllegalStateException(attempt + " is published already"));
    }
    return shown(now);
  }

  /** There are two witnesses: a user or the catalog may drop the mark, and snapshots expire. */
  private boolean isPublished(TableMetadata now) {
    return now.properties().containsKey(MARK + attempt) || own(now).findAny().isPresent();
  }

  private Stream<Snapshot> own(TableMetadata now) {
    return now.snapshots().stream()
        .filter(one -> one.summary() != null && attempt.equals(one.summary().get(StagedTable.SUMMARY)));
  }

  /** Returns the metadata with this block's retry limits, which Iceberg reads from the properties, in memory only. */
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
    // On a retry an operation reuses the cached manifests of the one before it, with the sequence numbers and row ids
    // of the first try: other writers' equality deletes would delete these rows, and two rows would share one id.
    refuse(moved && added(staged).count() > 1, "others have committed, and the block has several statements");
    // A replaced table may give a column another type under its old id: this commit would make it unreadable.
    TypeUtil.validateWriteSchema(base.schema(), begun.schema(), true, false);
    // Build on the metadata without this block's retry limits, so that the commit reverts no other property.
    TableMetadata.Builder builder = TableMetadata.buildFrom(found);
    staged.changes().forEach(change -> change.applyTo(builder));
    builder.setProperties(Map.of(MARK + attempt, mark(base, staged))).removeProperties(outdated(base));
    // A REST catalog requires that a reference which the commit sets has not changed: here, that it does not exist.
    builder.setRef(attempt, SnapshotRef.tagBuilder(staged.ref(target).snapshotId()).build()).removeRef(attempt);
    TableMetadata changed = builder.build();
    String foreign = OldMetadata.foreign(found, changed);
    refuse(
        foreign != null,
        "the commit would delete " + foreign + ", which is not named like a metadata file, although metadata-log names it; set " + TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED + " to false");
    send(changed);
  }

  /** Throws {@link CommitFailedException} only if the table, read after the failure, does not hold the commit. */
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

  /** Returns the attempt's mark, read from the catalog; null if there is none. */
  String mark() {
    TableMetadata now = table.refresh();
    SnapshotRef head = now.ref(target);
    // The session's next block begins at this snapshot, whose list is still here: let its table know the list's text.
    own(now).filter(one -> head != null && one.snapshotId() == head.snapshotId()).forEach(one -> one.allManifests(io()));
    return now.properties().get(MARK + attempt);
  }

  /** Returns the snapshots added to the target branch since the block began, read from the catalog. */
  List<Snapshot> since() {
    return since(begun, refresh());
  }

  private void refuse(boolean refused, String reason) {
    ValidationException.check(!refused, "%s is not published to %s: %s", attempt, target, reason);
  }

  /** Throws if a statement has staged rows outside the target branch: on another branch, or for publication by id. */
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

  /** Returns the target branch's snapshots in {@code now} that are not in {@code earlier}, newest first. */
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
