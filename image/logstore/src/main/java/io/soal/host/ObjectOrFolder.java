package io.soal.host;

import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.util.functional.RemoteIterators;

/**
 * Lists files, and fails where a path is both an object and a folder.
 *
 * <p>S3 allows {@code in/a.csv} beside {@code in/a.csv/z.csv}. Hadoop and Spark take such a path for one of the two, now
 * for this and now for that: they leave out rows, or read them twice. Nothing says which of them is meant, so nothing is
 * read. The marker of a folder ({@code in/}) is no such object.
 */
public final class ObjectOrFolder {
  private ObjectOrFolder() {}

  /** Does the same as the file system's method, for a path that Hadoop takes for a file if it can. */
  public static FileStatus getFileStatus(FileSystem files, Path path) throws IOException {
    FileStatus own = files.getFileStatus(path);
    if (own.isFile()) {
      listStatus(files, path, true);
    }
    return own;
  }

  /** Checks a path that is to be deleted: S3A would delete the object, and leave the folder. */
  public static void check(FileSystem files, Path path) throws IOException {
    if (files.isFile(path)) {
      listStatus(files, path, true);
    }
  }

  /** Does the same as the file system's method. */
  public static boolean delete(FileSystem files, Path path, boolean isRecursive) throws IOException {
    check(files, path);
    return files.delete(path, isRecursive);
  }

  /** Does the same as the file system's method, for a folder that a listing has found. */
  public static FileStatus[] listStatus(FileSystem files, Path path) throws IOException {
    return listStatus(files, path, false);
  }

  /** Does the same; only for a path that a statement names ({@code isNamed}) this has to ask for the object. */
  public static FileStatus[] listStatus(FileSystem files, Path path, boolean isNamed) throws IOException {
    FileStatus[] listed = files.listStatus(path);
    check(files, path, List.of(listed), isNamed);
    return listed;
  }

  /** Does the same as the file system's method, for a folder that a listing has found. */
  public static RemoteIterator<LocatedFileStatus> listLocatedStatus(FileSystem files, Path path) throws IOException {
    List<LocatedFileStatus> listed = RemoteIterators.toList(files.listLocatedStatus(path));
    check(files, path, listed, false);
    return RemoteIterators.remoteIteratorFromIterable(listed);
  }

  /** Does the same as the file system's method, for a path that a statement names. */
  public static RemoteIterator<LocatedFileStatus> listFiles(FileSystem files, Path path, boolean isRecursive)
      throws IOException {
    List<LocatedFileStatus> listed = RemoteIterators.toList(files.listFiles(path, isRecursive));
    check(files, path, listed, true);
    return RemoteIterators.remoteIteratorFromIterable(listed);
  }

  private static void check(FileSystem files, Path path, List<? extends FileStatus> listed, boolean isNamed)
      throws IOException {
    Set<Path> folders = new HashSet<>();
    for (FileStatus one : listed) {
      Path folder = one.isDirectory() ? one.getPath() : one.getPath().getParent();
      while (folder != null && folders.add(folder)) {
        folder = folder.getParent();
      }
    }
    for (FileStatus one : listed) {
      if (one.isFile() && folders.contains(one.getPath())) {
        throw both(files, one.getPath());
      }
    }
    Path own = files.makeQualified(path);
    if (isNamed && folders.contains(own) && files.isFile(own)) {
      throw both(files, own);
    }
  }

  private static IOException both(FileSystem files, Path path) throws IOException {
    RemoteIterator<LocatedFileStatus> below = files.listFiles(path, true);
    Path first = below.hasNext() ? below.next().getPath() : path;
    return new IOException(path + " is an object, and also the folder of the object "
        + (first.equals(path) ? path + "/" : first) + ": nothing says which of them is meant, so nothing was read or"
        + " deleted. Move or delete one of the two, and start again");
  }
}
