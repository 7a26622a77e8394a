package io.soal.logstore;

import java.lang.reflect.Field;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.delta.DeltaConfig;
import org.apache.spark.sql.delta.DeltaConfigs;

/**
 * How many commits lie between two checkpoints of a table without the property {@code delta.checkpointInterval}.
 *
 * <p>Spark's default for new tables would write the property into the table, and Delta refuses a later {@code CREATE
 * TABLE IF NOT EXISTS … TBLPROPERTIES … LOCATION} whose properties are not the table's.
 */
final class CheckpointDistance {
  private static final String KEY = "soal.delta.checkpointInterval";

  private CheckpointDistance() {}

  /** Replaces Delta's own default in this JVM, if the configuration asks for it. */
  static void of(Configuration conf) {
    String distance = conf.get(KEY);
    if (distance == null) {
      return; // as in a Spark without the image's settings, perhaps with another Delta
    }
    try {
      DeltaConfig<Object> config = DeltaConfigs.CHECKPOINT_INTERVAL();
      Field field = DeltaConfig.class.getDeclaredField("defaultValue");
      field.setAccessible(true);
      field.set(config, distance);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(KEY, error);
    }
  }
}
