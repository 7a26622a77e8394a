package io.soal.host;

import java.util.Map;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.LocationProvider;

/** Checks the class that a table's properties name, before Iceberg makes an object of it, whatever its type. */
public final class TableClasses {
  private TableClasses() {}

  /** @throws IllegalArgumentException if the class is on the class path and no {@link LocationProvider} */
  public static void check(Map<String, String> properties) {
    String name = properties.get(TableProperties.WRITE_LOCATION_PROVIDER_IMPL);
    try {
      if (name != null && !LocationProvider.class.isAssignableFrom(
          Class.forName(name, false, Thread.currentThread().getContextClassLoader()))) {
        throw new IllegalArgumentException(TableProperties.WRITE_LOCATION_PROVIDER_IMPL + " names " + name
            + ", which is no " + LocationProvider.class.getName() + "; unset the table's property");
      }
    } catch (ClassNotFoundException | LinkageError missing) {
      return; // Iceberg says so
    }
  }
}
