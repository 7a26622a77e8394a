package io.soal.host;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.fs.Path;

/**
 * Checks the keys that S3 lists, before S3A makes paths of them.
 *
 * <p>Hadoop's paths have no {@code .}, {@code ..} or empty element: of the key {@code in/../pay/a.csv} S3A would make the
 * path of another object, so that a reader of {@code in} gets that one, and a clean-up deletes it.
 */
public final class ObjectKeys {
  private ObjectKeys() {}

  /** @throws IOException if the address has a port: S3A would find no file below it, and read nothing */
  public static void checkBucket(URI bucket) throws IOException {
    if (bucket.getPort() != -1) {
      throw new IOException(bucket.getScheme() + "://" + bucket.getAuthority() + " is no address of a bucket, since it"
          + " has a port. Write s3a://" + bucket.getHost() + "/...; the endpoint is a setting (fs.s3a.endpoint)");
    }
  }

  /** @throws IOException if the path would be that of another key */
  public static void check(URI bucket, String key) throws IOException {
    String own = "/" + key;
    String path = own.startsWith("//") ? "" : new Path(own).toUri().getPath(); // "//a" is a bucket to Path
    if (!path.equals(own) && !(path + "/").equals(own)) {
      throw new IOException("the object with the key '" + key + "' in " + bucket + " has no path, since an element of the"
          + " key is empty, '.' or '..': Spark would take another object for it. Delete it, or give it another key");
    }
  }
}
