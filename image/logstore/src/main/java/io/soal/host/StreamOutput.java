package io.soal.host;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.deploy.SparkHadoopUtil;

/**
 * Checks the list of files ({@code _spark_metadata}) in a folder that a stream has written, or seems to have written.
 *
 * <p>Spark reads the listed files in place of the folder's. Whoever may write into the folder may write the list, so it
 * may name only files below the folder.
 */
public final class StreamOutput {
  private StreamOutput() {}

  /** Returns {@code listed}; throws {@link IOException} if one of the files is outside of the folder. */
  public static FileStatus[] within(Path folder, FileStatus[] listed) throws IOException {
    Path own = folder.getFileSystem(SparkHadoopUtil.get().conf()).makeQualified(folder);
    String below = own.toString().endsWith("/") ? own.toString() : own + "/"; // a bucket's root ends with it
    for (FileStatus file : listed) {
      URI named = file.getPath().toUri();
      // Resolves dots as a file system would, also those that the list has escaped.
      Path path = new Path(named.getScheme(), named.getAuthority(), named.getPath());
      if (!path.toString().startsWith(below)) {
        throw new IOException(folder + "/_spark_metadata lists " + file.getPath() + ", which is not below " + own
            + ", so nothing is read. If a stream has written the folder, read it by the scheme that the list has (s3:// or"
            + " s3a://); if the folder was moved here later, delete _spark_metadata: Spark then reads the folder's own"
            + " files");
      }
    }
    return listed;
  }
}
