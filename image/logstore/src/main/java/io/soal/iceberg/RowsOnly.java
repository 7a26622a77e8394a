package io.soal.iceberg;

import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/** A table's operations without the commit: a statement can stage rows, but not alter or maintain the table. */
class RowsOnly implements TableOperations {
  protected final TableOperations table;
  private final FileIO files;

  RowsOnly(TableOperations table, FileIO files) {
    this.table = table;
    this.files = files;
  }

  @Override
  public TableMetadata current() {
    return table.current();
  }

  @Override
  public TableMetadata refresh() {
    return table.refresh();
  }

  @Override
  public void commit(TableMetadata base, TableMetadata changed) {
    throw new UnsupportedOperationException(
        "A block stages rows only: alter or maintain the table before or after it, by its own name");
  }

  @Override
  public FileIO io() {
    return files;
  }

  @Override
  public EncryptionManager encryption() {
    return table.encryption();
  }

  @Override
  public String metadataFileLocation(String name) {
    return table.metadataFileLocation(name);
  }

  @Override
  public LocationProvider locationProvider() {
    return table.locationProvider();
  }
}
