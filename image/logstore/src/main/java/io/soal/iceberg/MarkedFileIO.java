package io.soal.iceberg;

import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.util.SerializableSupplier;
import org.apache.spark.TaskContext;

/**
 * Hadoop's way to the files of an Iceberg table, which here is S3A. In a guarded block the name of a file that a task
 * writes begins with the mark of its attempt, so that it is known for ours also if nobody comes to commit it. Iceberg
 * records where a file has been written, not what was asked for.
 */
public class MarkedFileIO extends HadoopFileIO {
  /** The setting of the block's session that holds the mark; Spark hands a session's settings to its own tasks. */
  public static final String MARK = "spark.safewriter.mark";

  /** For Iceberg, which makes one by its class's name and sets the configuration then. */
  public MarkedFileIO() {}

  public MarkedFileIO(Configuration configuration) {
    super(configuration);
  }

  public MarkedFileIO(SerializableSupplier<Configuration> configuration) {
    super(configuration);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    TaskContext task = TaskContext.get();
    String mark = task == null ? null : task.getLocalProperty(MARK);
    return super.newOutputFile(mark == null ? path : marked(path, mark));
  }

  private static String marked(String path, String mark) {
    int name = path.lastIndexOf('/') + 1;
    return path.substring(0, name) + mark + path.substring(name);
  }
}
