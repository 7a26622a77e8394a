package io.soal.iceberg;

import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.util.SerializableSupplier;

/**
 * Hadoop's way to the files of an Iceberg table, which here is S3A. In a guarded block the names of data files,
 * manifests and manifest lists begin with the mark of its attempt, so that they are known for ours also if nobody comes
 * to commit them. Iceberg records where a file has been written, not what was asked for.
 */
public class MarkedFileIO extends HadoopFileIO {
  private final Mark mark = new Mark();

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
    this.mark.setDriver(mark);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    return super.newOutputFile(mark.put(path));
  }
}
