package io.soal.disk;

import org.apache.hadoop.fs.LocalFileSystem;

/** What {@code fs.file.impl} names: Hadoop's own file system of the local disk, but for {@link GuardedRaw}. */
public final class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new GuardedRaw());
  }
}
