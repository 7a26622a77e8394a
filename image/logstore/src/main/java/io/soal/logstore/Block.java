package io.soal.logstore;

import org.apache.hadoop.fs.Path;

/**
 * What a block is opened with.
 *
 * @param claimedAt a version of the table before the claim; no fence of this epoch can stand in it or before it
 * @param latestStartMs epoch milliseconds after which no commit may start; 0 or less: no limit
 * @param before the protocol and metaData actions of the table at the claim, a line each; empty: there is none
 * @param note s3a URI of the note that precedes a commit which creates the table or changes its metadata
 * @param journal local file that learns of a commit before it is sent; empty: none
 */
record Block(
    String table, String key, long epoch, long claimedAt, long latestStartMs, String before, String note, String journal,
    String nonce, String filePrefix) {

  Block {
    table = canonical(table);
  }

  /** One name for one table: scheme and slashes as in SafeWriter's own canonical form. */
  static String canonical(String table) {
    String path = new Path(table).toString().replaceFirst("^s3[an]://", "s3://");
    return path.endsWith("/") ? path.substring(0, path.length() - 1) : path;
  }
}
