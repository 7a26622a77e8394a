package io.soal.logstore;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;

/** Checks by a session's settings whether all commits to a table go through our log store. */
public final class Surroundings {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String EVERY_STORE = "spark.delta.logStore.class";

  private Surroundings() {}

  /**
   * Inspects a session before a block.
   *
   * @return a JSON object: busy, whether a block is open on the session; key and found, a setting that lets commits
   *     bypass the gate and its value, if there is one; endpoint, of the table's S3, empty: AWS's own
   */
  public static String of(SparkSession session, String table) {
    SparkContext context = session.sparkContext();
    return look(context.conf(), context.hadoopConfiguration(), new Path(table))
        .put("busy", Gate.BLOCKS.busy(session))
        .toString();
  }

  static ObjectNode look(SparkConf conf, Configuration files, Path table) {
    String own = table.toUri().getScheme();
    ObjectNode found = JSON.createObjectNode();
    String bucket = "fs.s3a.bucket." + table.toUri().getHost();
    found.put("endpoint", files.get(bucket + ".endpoint", files.get("fs.s3a.endpoint", "")));
    // A catalog may use another scheme for the table than the job does.
    Set<String> schemes = new LinkedHashSet<>(List.of(own));
    schemes.addAll(List.of("s3", "s3a", "s3n"));
    for (String scheme : schemes) {
      String key = "spark.delta.logStore." + scheme + ".impl";
      String store = conf.get(key, conf.get(key.substring("spark.".length()), ""));
      boolean reaches = scheme.equals(own) || files.get("fs." + scheme + ".impl") != null;
      if (reaches && !isOurs(store)) {
        return found.put("key", key).put("found", store);
      }
    }
    String every = conf.get(EVERY_STORE, "");
    return every.isEmpty() || isOurs(every) ? found : found.put("key", EVERY_STORE).put("found", every);
  }

  private static boolean isOurs(String store) {
    return store.equals(ConditionalS3LogStore.class.getName());
  }
}
