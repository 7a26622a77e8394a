package io.soal.iceberg;

import io.soal.logstore.Bounded;
import io.soal.logstore.Journal;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.spark.SparkCatalog;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The Spark catalog in which a block's statements find its table: {@code safewriter.`<attempt>`.db.table}.
 *
 * <p>It holds the tables of the blocks that are open in this JVM. A statement that outlives its block finds no table.
 */
public final class StagingCatalog extends SparkCatalog {
  static final Map<TableIdentifier, StagedTable> OPEN = new ConcurrentHashMap<>();

  /** The journals of closed blocks, by attempt: a statement can outlive its block. */
  static final Map<String, Journal> ENDED = Bounded.map(100_000);

  /** Whether a block is open in this JVM. */
  public static boolean isAnyOpen() {
    return !OPEN.isEmpty();
  }

  @Override
  protected Catalog buildIcebergCatalog(String name, CaseInsensitiveStringMap options) {
    return new Blocks(name);
  }

  @Override
  public org.apache.spark.sql.connector.catalog.Table loadTable(Identifier name)
      throws org.apache.spark.sql.catalyst.analysis.NoSuchTableException {
    org.apache.spark.sql.connector.catalog.Table found = super.loadTable(name);
    return found instanceof SparkTable shown && shown.table() instanceof StagedTable staged
        ? new ReportingTable(shown, staged)
        : found;
  }

  /** Spark calls this for the target of a statement that writes. */
  @Override
  public org.apache.spark.sql.connector.catalog.Table loadTable(Identifier name, Set<TableWritePrivilege> writes)
      throws org.apache.spark.sql.catalyst.analysis.NoSuchTableException {
    try {
      return loadTable(name);
    } catch (org.apache.spark.sql.catalyst.analysis.NoSuchTableException gone) {
      Journal journal = name.namespace().length == 0 ? null : ENDED.get(name.namespace()[0]);
      if (journal != null) {
        journal.tellRefused(StagedTable.OVER);
      }
      throw gone;
    }
  }

  private record Blocks(String name) implements Catalog {
    @Override
    public Table loadTable(TableIdentifier wanted) {
      StagedTable table = OPEN.get(wanted);
      if (table == null) {
        throw new NoSuchTableException("No block is open on %s; a block's table is gone with the block", wanted);
      }
      return table;
    }

    @Override
    public List<TableIdentifier> listTables(Namespace namespace) {
      return List.of();
    }

    @Override
    public TableBuilder buildTable(TableIdentifier table, Schema schema) {
      throw new UnsupportedOperationException("A block neither creates nor replaces its table " + table + ": create it"
          + " before the block (CREATE TABLE IF NOT EXISTS), and replace its rows by INSERT OVERWRITE, or by"
          + " DELETE FROM and INSERT INTO, in the block");
    }

    @Override
    public boolean dropTable(TableIdentifier table, boolean purge) {
      throw new UnsupportedOperationException("A block's table cannot be dropped: " + table);
    }

    @Override
    public void renameTable(TableIdentifier from, TableIdentifier to) {
      throw new UnsupportedOperationException("A block's table cannot be renamed: " + from);
    }
  }
}
