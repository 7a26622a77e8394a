package io.soal.host;

import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;

/**
 * Filters the options of a reader or writer that Spark passes to Hadoop as settings of one statement.
 *
 * <p>An option may come from a Delta table's log ({@code format.options}, SQL's {@code WITH}) instead of the script. As
 * a Hadoop setting it could choose the server that gets the role's credentials, a class that reads them, or a program;
 * and Hadoop caches such a file system for later statements. So only format settings pass. File-system settings belong
 * to the session, where scripts, events and owners are checked. The same holds for an Iceberg table's properties, which
 * its writers pass to Hadoop. Options that Hadoop does not read ({@code delta.…}) are dropped here; Spark still sees
 * them.
 */
public final class ReaderOptions {
  /** The settings that pass. Not all of Parquet and ORC: some name classes, or hold serialised objects. */
  private static final Pattern OF_A_FORMAT = Pattern.compile("[^.]*"
      + "|mapred(uce)?\\.(input\\.fileinputformat|max|min)\\.[\\w.]+"
      + "|parquet\\.(block|bloom|column|compression|dictionary|enable|page|statistics|writer)[\\w.#-]*"
      + "|orc\\.(block|bloom|buffer|compress|dictionary|encoding|row|stripe)[\\w.]*"
      + "|avro\\.(mapred\\.ignore\\.inputs\\.without\\.extension|output\\.codec)");

  /** The prefixes that Hadoop and its formats read. Other names with a dot are not passed on at all. */
  private static final Pattern OF_HADOOP = Pattern.compile(
      "(adl|avro|dfs|file|fs|ftp|ha|hadoop|hive|httpfs|io|ipc|mapred|mapreduce|net|nfs|orc|parquet|rpc|s3|s3a|security|seq"
          + "|tfile|yarn|zlib)\\..*",
      Pattern.CASE_INSENSITIVE);

  private static final Pattern OF_A_FILE = Pattern.compile("(parquet|orc)\\..*");

  private ReaderOptions() {}

  /** Replaces {@code values.set(name, value)}; throws for a Hadoop setting that is not a format's. */
  public static void set(Configuration values, String name, String value) {
    if (OF_A_FORMAT.matcher(name).matches()) {
      values.set(name, value);
    } else if (OF_HADOOP.matcher(name).matches()) {
      throw new UnsupportedOperationException("the option " + name + " sets more than a format, and options may come from"
          + " a table's log; give it to the session instead, as spark.hadoop." + name);
    }
  }

  /** Replaces {@code values.set(name, value)} for a table property: only format settings of Parquet and ORC pass. */
  public static void setOfTable(Configuration values, String name, String value) {
    if (OF_A_FILE.matcher(name).matches() && OF_A_FORMAT.matcher(name).matches()) {
      values.set(name, value);
    }
  }
}
