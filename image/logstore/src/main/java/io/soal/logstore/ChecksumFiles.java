package io.soal.logstore;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;

/**
 * Spark's way to write files whole or not at all, with one exception: a checksum of Delta's goes to S3 by one PUT.
 * Spark writes such files under another name and renames them, since it knows no store; on S3 that is twenty
 * requests after each commit, and a copy that a kill leaves behind. Only the commit of that version writes its checksum,
 * so no condition is needed.
 */
public final class ChecksumFiles implements CheckpointFileManager {
  private static final Pattern CHECKSUM = Pattern.compile(".*/_delta_log/[0-9]{20}\\.crc");

  private final Path place;
  private final Configuration conf;
  private CheckpointFileManager usual;

  /** As Spark makes one. */
  public ChecksumFiles(Path place, Configuration conf) {
    this.place = place;
    this.conf = conf;
  }

  @Override
  public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
    if (!isChecksumOnS3(path)) {
      return usual().createAtomic(path, overwriteIfPossible);
    }
    try {
      FSDataOutputStreamBuilder<?, ?> builder = path.getFileSystem(conf).createFile(path);
      builder.overwrite(true);
      builder.opt("fs.s3a.create.performance", true); // asks for nothing before the PUT
      return new Put(builder.build());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static boolean isChecksumOnS3(Path path) {
    String scheme = path.toUri().getScheme();
    return ("s3a".equals(scheme) || "s3".equals(scheme)) && CHECKSUM.matcher(path.toUri().getPath()).matches();
  }

  /** Made at its first use: it has a file system and clients of its own. */
  private synchronized CheckpointFileManager usual() {
    if (usual == null) {
      usual = new FileContextBasedCheckpointFileManager(place, conf);
    }
    return usual;
  }

  @Override
  public FSDataInputStream open(Path path) {
    return usual().open(path);
  }

  @Override
  public FileStatus[] list(Path path, PathFilter filter) {
    return usual().list(path, filter);
  }

  @Override
  public void mkdirs(Path path) {
    usual().mkdirs(path);
  }

  @Override
  public boolean exists(Path path) {
    return usual().exists(path);
  }

  @Override
  public void delete(Path path) {
    usual().delete(path);
  }

  @Override
  public boolean isLocal() {
    return usual().isLocal();
  }

  @Override
  public Path createCheckpointDirectory() {
    return usual().createCheckpointDirectory();
  }

  /** Sends all its bytes to S3 when it is closed, in one request. */
  private static final class Put extends CancellableFSDataOutputStream {
    private final FSDataOutputStream out;

    Put(FSDataOutputStream out) {
      super(out);
      this.out = out;
    }

    @Override
    public void cancel() {
      out.abort();
    }
  }
}
