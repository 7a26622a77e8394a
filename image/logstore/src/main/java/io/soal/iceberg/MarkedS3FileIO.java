package io.soal.iceberg;

import org.apache.iceberg.aws.s3.S3FileIO;
import org.apache.iceberg.io.OutputFile;

/**
 * Iceberg's own way to S3, with the names of {@link MarkedFileIO} for what a guarded block writes. It needs clients of
 * AWS that the image lacks (scripts/emulator/aws/pom.xml), and is loaded only where a catalog names it.
 */
public class MarkedS3FileIO extends S3FileIO {
  private final Mark mark = new Mark();

  /** For Iceberg, which makes one by its class's name and initializes it then. */
  public MarkedS3FileIO() {}

  /** What the block puts before the names of manifests and their lists; null when it ends. */
  public void setMark(String mark) {
    this.mark.setDriver(mark);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    return super.newOutputFile(mark.put(path));
  }
}
