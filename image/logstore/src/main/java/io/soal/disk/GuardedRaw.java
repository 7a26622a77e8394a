package io.soal.disk;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's files on the local disk, without checksums; it reads and writes them where {@link OwnDisk} lets it. */
final class GuardedRaw extends RawLocalFileSystem {
  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    OwnDisk.checkRead(pathToFile(path));
    return super.open(path, bufferSize);
  }

  /** Each creation of a file and each append comes here. */
  @Override
  protected OutputStream createOutputStreamWithMode(Path path, boolean append, FsPermission permission)
      throws IOException {
    OwnDisk.checkFile(pathToFile(path));
    return super.createOutputStreamWithMode(path, append, permission);
  }

  @Override
  public boolean mkdirs(Path path) throws IOException {
    OwnDisk.checkFolder(pathToFile(path));
    return super.mkdirs(path);
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    OwnDisk.checkFolder(pathToFile(path));
    return super.mkdirs(path, permission);
  }

  @Override
  public boolean rename(Path from, Path to) throws IOException {
    OwnDisk.checkFile(pathToFile(to));
    return super.rename(from, to);
  }
}
