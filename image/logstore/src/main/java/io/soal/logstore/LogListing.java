package io.soal.logstore;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.Listing;
import org.apache.hadoop.fs.s3a.S3AFileStatus;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3AUtils;
import org.apache.hadoop.fs.s3a.S3ListRequest;

/** Lists a folder on S3 from a name on. */
final class LogListing {
  private LogListing() {}

  /**
   * Returns the files beside {@code first} whose names are not before its own, in their order; it need not exist.
   *
   * @throws FileNotFoundException if there is no such folder
   */
  static List<FileStatus> from(S3AFileSystem s3, Path first) throws IOException {
    Path folder = first.getParent();
    int page = s3.getConf().getInt(Constants.MAX_PAGING_KEYS, Constants.DEFAULT_MAX_PAGING_KEYS);
    // S3 lists the keys behind one, and no name of a log is a part of another one.
    String before = s3.pathToKey(first).replaceFirst(".$", "");
    List<S3AFileStatus> found = list(s3, folder, before, page);
    if (found.isEmpty() && list(s3, folder, "", page).isEmpty()) {
      throw new FileNotFoundException("No such file or directory: " + folder);
    }
    String least = first.getName();
    return found.stream()
        .filter(one -> one.isFile() && one.getPath().getName().compareTo(least) >= 0)
        .map(FileStatus.class::cast)
        .toList();
  }

  private static List<S3AFileStatus> list(S3AFileSystem s3, Path folder, String after, int page) throws IOException {
    S3ListRequest request = S3ListRequest.v2(
        s3.getRequestFactory()
            .newListObjectsV2RequestBuilder(s3.pathToKey(folder) + "/", "/", page)
            .startAfter(after)
            .build());
    return List.of(
        S3AUtils.iteratorToStatuses(
            s3.getListing().createFileStatusListingIterator(
                folder, request, path -> true, new Listing.AcceptAllButSelfAndS3nDirs(folder),
                s3.getActiveAuditSpan())));
  }
}
