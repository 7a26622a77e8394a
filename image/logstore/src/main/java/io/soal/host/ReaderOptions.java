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
 */
public final class ReaderOptions {
  /** A list of what may pass: Parquet and ORC also have settings with classes, and with objects to be deserialised. */
  private static final Pattern OF_A_FORMAT = Pattern.compile("[^.]*"
      + "|mapred(uce)?\\.(input\\.fileinputformat|max|min)\\.[\\w.]+"
      + "|parquet\\.(block|bloom|column|compression|dictionary|enable|page|statistics|writer)[\\w.#-]*"
      + "|orc\\.(block|bloom|buffer|compress|dictionary|encoding|row|stripe)[\\w.]*"
      + "|avro\\.(mapred\\.ignore\\.inputs\\.without\\.extension|output\\.codec)");

  private ReaderOptions() {}

  /** Stands for {@code values.set(name, value)}; throws if it is no setting of a format. */
  public static void set(Configuration values, String name, String value) {
    if (!OF_A_FORMAT.matcher(name).matches()) {
      throw new UnsupportedOperationException("the option " + name + " sets more than a format, and options may come from"
          + " a table's log; give it to the session instead, as spark.hadoop." + name);
    }
    values.set(name, value);
  }
}
