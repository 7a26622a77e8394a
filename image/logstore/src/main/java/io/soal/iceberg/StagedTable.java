package io.soal.iceberg;

import java.util.function.Supplier;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DeleteFiles;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.ReplacePartitions;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.SnapshotUpdate;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.UpdateSchema;

/**
 * A table as an open block sees it: statements read from the block's transaction and write into it. (They cannot read
 * the table that Iceberg's transaction offers.)
 */
final class StagedTable extends BaseTable {
  /** The field in the summary of each of a block's snapshots that holds the attempt's name. */
  static final String SUMMARY = "safewriter.attempt";

  private final transient Supplier<Transaction> transactions;
  private final transient Publication publication;
  private final String attempt;
  private volatile boolean shut;

  StagedTable(
      Supplier<Transaction> transactions, TableOperations shown, Publication publication, String name, String attempt) {
    super(new ReadOnly(shown, name), name);
    this.transactions = transactions;
    this.publication = publication;
    this.attempt = attempt;
  }

  void shut() {
    shut = true;
  }

  private Transaction open() {
    if (shut) {
      throw new IllegalStateException("The block on " + name() + " has ended");
    }
    return transactions.get();
  }

  private <T extends SnapshotUpdate<T>> T staged(T update) {
    publication.count();
    return update.set(SUMMARY, attempt);
  }

  @Override
  public AppendFiles newAppend() {
    return staged(open().newAppend());
  }

  @Override
  public OverwriteFiles newOverwrite() {
    return staged(open().newOverwrite());
  }

  @Override
  public ReplacePartitions newReplacePartitions() {
    return staged(open().newReplacePartitions());
  }

  @Override
  public RowDelta newRowDelta() {
    return staged(open().newRowDelta());
  }

  @Override
  public DeleteFiles newDelete() {
    return staged(open().newDelete());
  }

  /** A statement with {@code mergeSchema} adds its columns; they become visible with its rows. */
  @Override
  public UpdateSchema updateSchema() {
    return open().updateSchema();
  }

  /** Refuses the commit of a change that a block does not stage: properties, partitioning, branches, maintenance. */
  private static final class ReadOnly extends Delegate {
    private final String name;

    ReadOnly(TableOperations table, String name) {
      super(table);
      this.name = name;
    }

    @Override
    public void commit(TableMetadata base, TableMetadata changed) {
      throw new UnsupportedOperationException(
          "A block on " + name + " stages rows only: alter or maintain the table before or after it, by its own name");
    }
  }
}
