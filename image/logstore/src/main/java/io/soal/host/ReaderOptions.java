package io.soal.host;

import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;

/**
 * The options of a reader or writer that Spark hands to Hadoop as settings of one statement.
 *
 * <p>An option need not be the script's: a Delta table's log has some of its own ({@code format.options}), and so has SQL
 * ({@code WITH}), which the log holds, too. As a setting of Hadoop it would choose the server to which the role's
 * credentials go, the class that has them, or a program; and Hadoop keeps such a file system for later statements. So only
 * settings of the formats pass. Those of file systems belong to the session, where scripts, events and owners are checked.
 * The properties of an Iceberg table, which its writers hand to Hadoop, are the table's in the same way.
 * Options that are nothing to Hadoop ({@code delta.…}) stay Spark's own.
 */
public final class ReaderOptions {
  /** A list of what may pass: Parquet and ORC also have settings with classes, and with objects to be deserialised. */
  private static final Pattern OF_A_FORMAT = Pattern.compile("[^.]*"
      + "|mapred(uce)?\\.(input\\.fileinputformat|max|min)\\.[\\w.]+"
      + "|parquet\\.(block|bloom|column|compression|dictionary|enable|page|statistics|writer)[\\w.#-]*"
      + "|orc\\.(block|bloom|buffer|compress|dictionary|encoding|row|stripe)[\\w.]*"
      + "|avro\\.(mapred\\.ignore\\.inputs\\.without\\.extension|output\\.codec)");

  /** Where Hadoop and its formats look for names; anything else that has a dot is not handed to them at all. */
  private static final Pattern OF_HADOOP = Pattern.compile(
      "(adl|avro|dfs|file|fs|ftp|ha|hadoop|hive|httpfs|io|ipc|mapred|mapreduce|net|nfs|orc|parquet|rpc|s3|s3a|security|seq"
          + "|tfile|yarn|zlib)\\..*",
      Pattern.CASE_INSENSITIVE);

  private static final Pattern OF_A_FILE = Pattern.compile("(parquet|orc)\\..*");

  private ReaderOptions() {}

  /** Stands for {@code values.set(name, value)}; throws if it is a setting of Hadoop's that is none of a format. */
  public static void set(Configuration values, String name, String value) {
    if (OF_A_FORMAT.matcher(name).matches()) {
      values.set(name, value);
    } else if (OF_HADOOP.matcher(name).matches()) {
      throw new UnsupportedOperationException("the option " + name + " sets more than a format, and options may come from"
          + " a table's log; give it to the session instead, as spark.hadoop." + name);
    }
  }

  /** Stands for {@code values.set(name, value)} with a property of a table: those of Parquet and ORC pass, and no other. */
  public static void setOfTable(Configuration values, String name, String value) {
    if (OF_A_FILE.matcher(name).matches() && OF_A_FORMAT.matcher(name).matches()) {
      values.set(name, value);
    }
  }
}
