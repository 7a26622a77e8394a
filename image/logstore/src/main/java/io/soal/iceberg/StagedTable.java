package io.soal.iceberg;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.soal.logstore.Journal;
import io.soal.logstore.Statement;
import java.io.IOException;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DeleteFiles;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.ReplacePartitions;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.SnapshotUpdate;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.Transactions;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.aws.AwsClientProperties;
import org.apache.iceberg.aws.s3.S3FileIOProperties;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.io.SupportsStorageCredentials;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.SparkSession;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A table as an open block sees it: statements read from and write to the block's transaction, in this JVM's memory.
 * The catalog sees the changes only when the block publishes them.
 *
 * <p>{@code safewriter/tables/iceberg/session.py} calls this class. Statements cannot use the table that Iceberg's
 * transaction offers, since Spark cannot read it.
 */
public final class StagedTable extends BaseTable {
  /** The field with the attempt's name in the summary of each snapshot of a block. */
  static final String SUMMARY = "safewriter.attempt";

  /** The reason given when a statement that has outlived its block is refused. */
  static final String OVER = "the block of this statement has ended, and nothing of it is published any more";

  private final transient TableIdentifier staged;
  private final transient Publication publication;
  private final transient Supplier<Transaction> transactions;
  private final transient Strays strays;
  private final String target;
  private final String attempt;
  private final transient Journal journal;
  /**
   * The batches that were begun but neither committed nor aborted, with their execution ids; null if Spark gave none.
   * Spark does not abort a batch if a stage before the write's own fails.
   */
  private final transient Map<Object, Long> begun = new IdentityHashMap<>();
  private boolean shut;
  private boolean reported;
  /** Whether the last statement that wrote has failed. */
  private boolean failed;

  private StagedTable(
      Publication publication, Supplier<Transaction> transactions, Strays strays, Journal journal, RowsOnly shown,
      String name, String target, String attempt, TableIdentifier staged) {
    super(shown, name);
    this.journal = journal;
    this.strays = strays;
    this.target = target;
    this.staged = staged;
    this.publication = publication;
    this.transactions = transactions;
    this.attempt = attempt;
  }

  /** Returns the session's settings whose names begin with {@code prefix}, as a JSON object. */
  public static String settings(SparkSession spark, String prefix) throws IOException {
    ObjectMapper json = new ObjectMapper();
    ObjectNode found = json.createObjectNode();
    CollectionConverters.asJava(spark.conf().getAll()).forEach((key, value) -> {
      if (key.startsWith(prefix)) {
        found.put(key, value);
      }
    });
    return json.writeValueAsString(found);
  }

  /**
   * Opens a block on the table as it is now.
   *
   * @param catalog the catalog's name in the session
   * @param identifier the table's name in its catalog, namespace first
   * @param target the branch that the block writes
   * @param uuid of the table that was claimed
   * @param location of the metadata that the claim has read; null if the catalog does not expose it
   * @param untilMs epoch milliseconds after which no publication may start
   * @param file path of the job's journal, which gets a line for each refused statement and each stray; empty: none
   * @param skipped whether an earlier attempt has committed the write
   */
  public static StagedTable open(
      SparkSession spark, String catalog, List<String> identifier, String target, String attempt, String uuid,
      String location, long untilMs, String file, boolean skipped) {
    Table found = load(spark, catalog, identifier, location);
    if (!found.uuid().equals(UUID.fromString(uuid))) {
      throw new NoSuchTableException("%s was dropped and recreated: its id is %s, it was %s", found.name(), found.uuid(), uuid);
    }
    TableOperations operations = ((HasTableOperations) found).operations();
    Publication publication = new Publication(operations, target, attempt, untilMs);
    Supplier<Transaction> begin = () -> Transactions.newTransaction(found.name(), publication);
    Transaction one = begin.get();
    // In a skipped block the table shows the rows that an earlier attempt committed, without staging them again.
    TableOperations shown = skipped ? publication : ((HasTableOperations) one.table()).operations();
    TableIdentifier staged =
        TableIdentifier.of(Stream.concat(Stream.of(attempt), identifier.stream()).toArray(String[]::new));
    Journal journal = new Journal(file, attempt.substring(attempt.lastIndexOf('-') + 1));
    Strays strays = new Strays(spark, String.join(".", identifier), publication::since, journal);
    StagedTable table =
        new StagedTable(
            publication, skipped ? begin : () -> one, strays, journal, new RowsOnly(shown, operations.io()), found.name(),
            target, attempt, staged);
    StagingCatalog.OPEN.put(staged, table);
    return table;
  }

  /** Adds a snapshot without rows to a table that has no snapshot yet: a fence is a tag on a snapshot. */
  public static void begin(SparkSession spark, String catalog, List<String> identifier) {
    Table table = load(spark, catalog, identifier, null);
    try {
      table.newFastAppend().validateWith(earlier -> !earlier.iterator().hasNext()).commit();
    } catch (CommitFailedException | ValidationException e) {
      table.refresh();
      if (table.currentSnapshot() == null) {
        throw e; // no other writer was first
      }
    }
  }

  /**
   * Uses the table that Spark's catalog caches (for 30 s, and for longer while it is used) only if it is at the location
   * that the claim read, and not with keys that may have ended.
   */
  private static Table load(SparkSession spark, String catalog, List<String> identifier, String location) {
    TableIdentifier name = TableIdentifier.of(identifier.toArray(String[]::new));
    // Spark reads a catalog's settings from the thread's active session, which may be another one.
    Catalog tables = spark.withActive(() -> Spark3Util.loadIcebergCatalog(spark, catalog));
    if (location != null) {
      Table kept = tables.loadTable(name);
      if (location.equals(((HasTableOperations) kept).operations().current().metadataFileLocation()) && !isLent(kept.io())) {
        return kept;
      }
    }
    tables.invalidateTable(name);
    return tables.loadTable(name);
  }

  /** Whether the catalog has handed out keys for the table's files, which end, and no place to renew them. */
  private static boolean isLent(FileIO files) {
    boolean withAnswer = files instanceof SupportsStorageCredentials && !((SupportsStorageCredentials) files).credentials().isEmpty();
    return (withAnswer || files.properties().containsKey(S3FileIOProperties.SESSION_TOKEN))
        && !files.properties().containsKey(AwsClientProperties.REFRESH_CREDENTIALS_ENDPOINT);
  }

  /**
   * Refuses statements that begin from now on.
   *
   * @return the strays as a message; null: none
   */
  public synchronized String shut() {
    StagingCatalog.ENDED.put(attempt, journal);
    StagingCatalog.OPEN.remove(staged);
    shut = true;
    return strays.found(!reported && Publication.added(operations().current()).findAny().isEmpty());
  }

  Strays strays() {
    return strays;
  }

  /** Records that a statement begins to write a batch. */
  synchronized void began(Object batch) {
    begun.put(batch, Statement.number());
  }

  private static boolean isOver(Long execution) {
    return execution != null && !Statement.running().contains(execution);
  }

  /** Records that a statement has committed or aborted its batch. */
  synchronized void ended(Object batch, boolean committed) {
    begun.remove(batch);
    failed = !committed;
    if (committed) {
      reported = true;
      begun.values().removeIf(StagedTable::isOver);
    }
  }

  /** Records that a statement has completed, whether it changed anything or not. */
  synchronized void report() {
    failed = false;
    reported = true;
  }

  /**
   * Returns whether the block has a snapshot to publish. If its statements completed but changed nothing, it stages an
   * empty snapshot, the table's witness of them.
   *
   * @throws UnsupportedOperationException if a statement has written another branch or is still running, or if the last
   *     one failed
   */
  public synchronized boolean isStaged() {
    if (!begun.values().stream().allMatch(StagedTable::isOver)) {
      throw new UnsupportedOperationException(
          "a statement of the block is still running: let its thread end before success()");
    }
    if (failed || !begun.isEmpty()) {
      throw new UnsupportedOperationException(
          "the last statement of the block that writes has failed, and its rows are missing: let its error end the block");
    }
    publication.refresh();
    if (reported && Publication.added(operations().current()).findAny().isEmpty()) {
      staged(transactions.get().newFastAppend()).toBranch(target).commit();
    }
    TableMetadata now = operations().current();
    publication.refuseElsewhere(now);
    return Publication.added(now).findAny().isPresent();
  }

  /**
   * Commits the block's transaction to the table's catalog, or throws. Call it once.
   *
   * @return the attempt's mark, read back from the catalog; null if the read fails
   */
  public String publish() {
    transactions.get().commitTransaction();
    try {
      return publication.mark();
    } catch (RuntimeException unread) {
      return null; // the guard then asks the catalog itself
    }
  }

  /** Whether the session's catalog holds the object that published, so that the session sees the publication. */
  public boolean isShown(SparkSession spark, String catalog, List<String> identifier) {
    Catalog tables = spark.withActive(() -> Spark3Util.loadIcebergCatalog(spark, catalog));
    Table kept = tables.loadTable(TableIdentifier.of(identifier.toArray(String[]::new)));
    return publication.isOf(((HasTableOperations) kept).operations()) && spark.sharedState().cacheManager().isEmpty();
  }

  private Transaction transaction() {
    if (shut) {
      journal.tellRefused(OVER);
      throw new IllegalStateException(OVER);
    }
    return transactions.get();
  }

  @Override
  public LocationProvider locationProvider() {
    return OwnFolder.of(super.locationProvider(), properties(), attempt);
  }

  private <T extends SnapshotUpdate<T>> T staged(T update) {
    return update.set(SUMMARY, attempt);
  }

  @Override
  public AppendFiles newAppend() {
    return staged(transaction().newAppend());
  }

  @Override
  public OverwriteFiles newOverwrite() {
    return staged(transaction().newOverwrite());
  }

  @Override
  public ReplacePartitions newReplacePartitions() {
    return staged(transaction().newReplacePartitions());
  }

  @Override
  public RowDelta newRowDelta() {
    return staged(transaction().newRowDelta());
  }

  @Override
  public DeleteFiles newDelete() {
    return staged(transaction().newDelete());
  }

  /** A statement with {@code mergeSchema} stages its new columns; they become visible with its rows. */
  @Override
  public UpdateSchema updateSchema() {
    return transaction().updateSchema();
  }
}
