package io.soal.iceberg;

import java.util.List;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.Transactions;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.SparkSession;

/**
 * A block's write to an Iceberg table: one transaction in this Java machine's memory. The table's catalog learns of it
 * when the block publishes it, and not before. {@code safewriter/tables/iceberg/session.py} calls this class.
 */
public final class Staging {
  private final TableIdentifier name;
  private final Publication publication;
  private final Transaction transaction;
  private final StagedTable table;

  private Staging(TableIdentifier name, Table found, String attempt, Publication publication, boolean skipped) {
    Supplier<Transaction> begin = () -> Transactions.newTransaction(found.name(), publication);
    this.name = name;
    this.publication = publication;
    this.transaction = begin.get();
    // In a skipped block the table shows the rows that an earlier attempt has committed, and not a second time.
    TableOperations shown = skipped ? publication : ((HasTableOperations) transaction.table()).operations();
    this.table = new StagedTable(skipped ? begin : () -> transaction, shown, publication, found.name(), attempt);
  }

  /**
   * Opens a block on the table as it is now.
   *
   * @param catalog the catalog's name in the session
   * @param identifier the table's name in its catalog, namespace first
   * @param target the branch that the block writes
   * @param uuid of the table that was claimed
   * @param untilMs epoch milliseconds after which no publication may start
   * @param skipped whether an earlier attempt has committed the write
   */
  public static Staging open(
      SparkSession spark, String catalog, List<String> identifier, String target, String attempt, String uuid,
      long untilMs, boolean skipped) {
    Table found = load(spark, catalog, identifier);
    if (!found.uuid().equals(UUID.fromString(uuid))) {
      throw new NoSuchTableException("%s was dropped and recreated: its id is %s, it was %s", found.name(), found.uuid(), uuid);
    }
    TableOperations operations = ((HasTableOperations) found).operations();
    String application = spark.sparkContext().applicationId();
    Publication publication = new Publication(operations, target, attempt, application, untilMs);
    String[] called = Stream.concat(Stream.of(attempt), identifier.stream()).toArray(String[]::new);
    Staging staging = new Staging(TableIdentifier.of(called), found, attempt, publication, skipped);
    StagingCatalog.OPEN.put(staging.name, staging);
    return staging;
  }

  /** Adds a snapshot without rows to a table that has no snapshot yet: a fence is a tag on a snapshot. */
  public static void begin(SparkSession spark, String catalog, List<String> identifier) {
    Table table = load(spark, catalog, identifier);
    try {
      table.newFastAppend().validateWith(earlier -> !earlier.iterator().hasNext()).commit();
    } catch (CommitFailedException | ValidationException e) {
      table.refresh();
      if (table.currentSnapshot() == null) {
        throw e; // nobody else was first
      }
    }
  }

  private static Table load(SparkSession spark, String catalog, List<String> identifier) {
    TableIdentifier name = TableIdentifier.of(identifier.toArray(String[]::new));
    // Spark reads a catalog's settings from the session that is active in the thread, which may be another one.
    Catalog tables = spark.withActive(() -> Spark3Util.loadIcebergCatalog(spark, catalog));
    tables.invalidateTable(name); // Spark's catalog keeps tables for half a minute
    return tables.loadTable(name);
  }

  StagedTable table() {
    return table;
  }

  /** Refuses statements that begin from now on. */
  public void shut() {
    StagingCatalog.OPEN.remove(name);
    table.shut();
  }

  /** Tells whether there is anything to publish. Throws if the block's application has written past the block's target. */
  public boolean isStaged() {
    publication.refuseStrays(publication.refresh());
    TableMetadata staged = table.operations().current();
    publication.refuseElsewhere(staged);
    return staged != publication.begun();
  }

  /** Commits all of it to the table's catalog, or throws. Call it once. */
  public void publish() {
    transaction.commitTransaction();
  }
}
