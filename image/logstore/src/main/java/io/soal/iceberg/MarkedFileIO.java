package io.soal.iceberg;

import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.util.SerializableSupplier;
import org.apache.spark.TaskContext;

/**
 * Hadoop's way to the files of an Iceberg table, which here is S3A. In a guarded block the names of data files,
 * manifests and manifest lists begin with the mark of its attempt, so that they are known for ours also if nobody comes
 * to commit them. Iceberg records where a file has been written, not what was asked for.
 */
public class MarkedFileIO extends HadoopFileIO {
  /** The setting of the block's session that holds the mark; Spark hands a session's settings to its own tasks. */
  public static final String MARK = "spark.safewriter.mark";

  // Not the metadata files: catalogs count them by the number that their names begin with.
  private static final String MANIFEST = ".avro";

  // Manifests are written by a pool of threads that all sessions share. What belongs to a session is its catalog, and
  // with it this object; tasks work with copies.
  private transient volatile String mark;

  /** For Iceberg, which makes one by its class's name and sets the configuration then. */
  public MarkedFileIO() {}

  public MarkedFileIO(Configuration configuration) {
    super(configuration);
  }

  public MarkedFileIO(SerializableSupplier<Configuration> configuration) {
    super(configuration);
  }

  /** What the block puts before the names of manifests and their lists; null when it ends. */
  public void setMark(String mark) {
    this.mark = mark;
  }

  @Override
  public OutputFile newOutputFile(String path) {
    TaskContext task = TaskContext.get();
    String mine = task != null ? task.getLocalProperty(MARK) : path.endsWith(MANIFEST) ? mark : null;
    return super.newOutputFile(mine == null ? path : marked(path, mine));
  }

  private static String marked(String path, String mark) {
    int name = path.lastIndexOf('/') + 1;
    return path.substring(0, name) + mark + path.substring(name);
  }
}
