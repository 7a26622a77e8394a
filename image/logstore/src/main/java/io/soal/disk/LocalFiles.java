package io.soal.disk;

import org.apache.hadoop.fs.LocalFileSystem;

/** The {@code fs.file.impl}: Hadoop's local file system on top of {@link GuardedRaw}. */
public final class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new GuardedRaw());
  }
}
