package io.soal.iceberg;

import org.apache.iceberg.aws.s3.S3FileIO;
import org.apache.iceberg.io.OutputFile;
import org.apache.spark.TaskContext;

/**
 * Iceberg's own way to S3, with the names of {@link MarkedFileIO} for the files that tasks of a guarded block write. It
 * needs clients of AWS that the image lacks (scripts/emulator/aws/pom.xml), and is loaded only where a catalog names it.
 */
public class MarkedS3FileIO extends S3FileIO {
  /** For Iceberg, which makes one by its class's name and initializes it then. */
  public MarkedS3FileIO() {}

  @Override
  public OutputFile newOutputFile(String path) {
    TaskContext task = TaskContext.get();
    String mark = task == null ? null : task.getLocalProperty(MarkedFileIO.MARK);
    int name = path.lastIndexOf('/') + 1;
    return super.newOutputFile(mark == null ? path : path.substring(0, name) + mark + path.substring(name));
  }
}
