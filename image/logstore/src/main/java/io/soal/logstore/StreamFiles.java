package io.soal.logstore;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;

/**
 * Writes a stream's checkpoint files, and Delta's checksums, which take the same path: each is on S3 whole or not at
 * all.
 *
 * <p>Spark writes such files under a temporary name and renames them. On S3 a rename is a check, a copy and a deletion,
 * so two runs of one query can both take a batch, and a kill leaves the copy behind. Here a conditional PUT creates a
 * file that must not be replaced (a query's logs of offsets and commits): the slower of two runs gets {@link
 * FileAlreadyExistsException}, which Spark handles. Their files may have equal bytes, so each gets a mark. Any other
 * file (the state) is one PUT or one multipart upload, sent when the file is closed.
 */
public final class StreamFiles implements CheckpointFileManager {
  private static final Pattern CHECKSUM = Pattern.compile(".*/_delta_log/[0-9]{20}\\.crc");

  private final Path place;
  private final Configuration conf;
  private CheckpointFileManager usual;

  /** Spark calls this by reflection. */
  public StreamFiles(Path place, Configuration conf) {
    this.place = place;
    this.conf = conf;
  }

  @Override
  public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
    if (!isOnS3(path)) {
      return usual().createAtomic(path, overwriteIfPossible);
    }
    // Only the writer of a version writes its checksum, so no condition is needed.
    if (!overwriteIfPossible && !CHECKSUM.matcher(path.toUri().getPath()).matches()) {
      return new Created(path, new ConditionalPut(conf), new ByteArrayOutputStream());
    }
    try {
      FSDataOutputStreamBuilder<?, ?> builder = path.getFileSystem(conf).createFile(path);
      builder.overwrite(true);
      builder.opt("fs.s3a.create.performance", true); // sends no request before the PUT
      return new Put(builder.build());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private static boolean isOnS3(Path path) {
    String scheme = path.toUri().getScheme();
    return "s3a".equals(scheme) || "s3".equals(scheme);
  }

  /**
   * Returns Spark's own manager, created on first use. S3 does not need FileContext's atomic renames; there it would
   * create its own clients, and it supports no scheme but s3a.
   */
  private synchronized CheckpointFileManager usual() {
    if (usual == null) {
      usual = isOnS3(place)
          ? new FileSystemBasedCheckpointFileManager(place, conf)
          : new FileContextBasedCheckpointFileManager(place, conf);
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

  /** A file that is uploaded on close. */
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

  /** A small file that is created on close, if there is none. */
  private static final class Created extends CancellableFSDataOutputStream {
    private final Path path;
    private final ConditionalPut store;
    private final ByteArrayOutputStream body;
    private boolean isOver;

    Created(Path path, ConditionalPut store, ByteArrayOutputStream body) {
      super(body);
      this.path = path;
      this.store = store;
      this.body = body;
    }

    @Override
    public void close() throws IOException {
      if (!isOver) {
        isOver = true;
        super.close();
        if (store.put(path, body.toByteArray(), UUID.randomUUID().toString()) == ObjectStore.Outcome.TAKEN) {
          throw new FileAlreadyExistsException(path + " is there already");
        }
      }
    }

    @Override
    public void cancel() {
      isOver = true;
    }
  }
}
