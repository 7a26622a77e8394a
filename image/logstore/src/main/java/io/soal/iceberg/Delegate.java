package io.soal.iceberg;

import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/** Passes everything but the commit on to the table's own operations. */
abstract class Delegate implements TableOperations {
  protected final TableOperations table;

  Delegate(TableOperations table) {
    this.table = table;
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
  public FileIO io() {
    return table.io();
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

  @Override
  public TableOperations temp(TableMetadata metadata) {
    return table.temp(metadata);
  }
}
