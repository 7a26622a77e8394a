package io.soal.logstore;

import java.io.IOException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.Constants;
import org.apache.hadoop.fs.s3a.Listing;
import org.apache.hadoop.fs.s3a.S3AFileStatus;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3AUtils;
import org.apache.hadoop.fs.s3a.S3ListRequest;

/** Lists an S3 folder from a given name on. */
final class LogListing {
  private LogListing() {}

  /**
   * Returns the files and folders next to {@code first} with its name or a later one, sorted by name; {@code first}
   * need not exist. An empty list does not mean that the folder exists.
   */
  static List<FileStatus> from(S3AFileSystem s3, Path first) throws IOException {
    Path folder = first.getParent();
    int page = s3.getConf().getInt(Constants.MAX_PAGING_KEYS, Constants.DEFAULT_MAX_PAGING_KEYS);
    // startAfter is exclusive, so drop the last character; no file name in a log is a prefix of another one.
    String key = s3.pathToKey(first);
    S3ListRequest request = S3ListRequest.v2(
        s3.getRequestFactory()
            .newListObjectsV2RequestBuilder(s3.pathToKey(folder) + "/", "/", page)
            .startAfter(key.substring(0, key.length() - 1))
            .build());
    S3AFileStatus[] found = S3AUtils.iteratorToStatuses(
        s3.getListing().createFileStatusListingIterator(
            folder, request, path -> true, new Listing.AcceptAllButSelfAndS3nDirs(folder), s3.getActiveAuditSpan()));
    return Arrays.stream(found)
        .filter(one -> one.getPath().getName().compareTo(first.getName()) >= 0)
        .sorted(Comparator.comparing(one -> one.getPath().getName())) // S3 sorts a folder "a" as "a/", after "a-b"
        .map(FileStatus.class::cast)
        .toList();
  }
}
