package io.soal.disk;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's raw local file system (no checksums), restricted to the paths that {@link OwnDisk} allows. */
final class GuardedRaw extends RawLocalFileSystem {
  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    OwnDisk.checkRead(pathToFile(path));
    return super.open(path, bufferSize);
  }

  /** Hadoop calls this for each creation of a file and each append. */
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
    OwnDisk.checkRename(pathToFile(from), pathToFile(to));
    return super.rename(from, to);
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    OwnDisk.checkRemoval(pathToFile(path));
    return super.delete(path, recursive);
  }
}
