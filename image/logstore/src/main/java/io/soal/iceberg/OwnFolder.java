package io.soal.iceberg;

import java.util.Map;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.util.PropertyUtil;

/**
 * Puts an attempt's data files into a folder of their own, so that a settler finds a dead attempt's files with one
 * listing, even among a hundred thousand others.
 */
final class OwnFolder implements LocationProvider {
  private static final long serialVersionUID = 1L;

  private final LocationProvider places;
  private final String attempt;

  private OwnFolder(LocationProvider places, String attempt) {
    this.places = places;
    this.attempt = attempt;
  }

  /** Returns {@code places} itself if the table has its own location provider, or spreads files by a hash. */
  static LocationProvider of(LocationProvider places, Map<String, String> properties, String attempt) {
    boolean spread = PropertyUtil.propertyAsBoolean(
        properties, TableProperties.OBJECT_STORE_ENABLED, TableProperties.OBJECT_STORE_ENABLED_DEFAULT);
    return spread || properties.containsKey(TableProperties.WRITE_LOCATION_PROVIDER_IMPL)
        ? places
        : new OwnFolder(places, attempt);
  }

  @Override
  public String newDataLocation(String filename) {
    return places.newDataLocation(attempt + "/" + filename);
  }

  @Override
  public String newDataLocation(PartitionSpec spec, StructLike partition, String filename) {
    return newDataLocation(spec.partitionToPath(partition) + "/" + filename);
  }
}
