package io.soal.host;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.spark.input.StreamInputFormat;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Takes the path of a file that Spark has listed as that file's name, not as a pattern.
 *
 * <p>Hadoop's input formats read every path as a pattern, so that the object <code>in/p=1/{../,}{../,}pay/a.csv</code>
 * would stand for files outside of {@code in}. Spark uses one to infer the schema of CSV, JSON and XML with {@code
 * multiLine}. A path that a script itself names stays a pattern.
 */
public final class ListedFiles extends StreamInputFormat {
  @Override
  protected List<FileStatus> listStatus(JobContext job) throws IOException {
    List<FileStatus> files = new ArrayList<>();
    for (Path path : FileInputFormat.getInputPaths(job)) {
      files.add(path.getFileSystem(job.getConfiguration()).getFileStatus(path));
    }
    return files;
  }

  /** Returns the pattern for {@code path} alone. A comma would end a path, and a backslash does not prevent that. */
  public static String pattern(String path) {
    return path.replaceAll("[\\\\{}*?\\[\\]]", "\\\\$0").replace(",", "{\\,}");
  }

  /**
   * Returns what {@code path} stands for where patterns are off (a stream's batch, and the schema of CSV, JSON and XML by
   * lines): itself. Spark takes all files for it if the path looks like a pattern, so that rows of its neighbours are read
   * twice.
   */
  public static Seq<Path> itself(Path path) {
    return CollectionConverters.asScala(List.of(path)).toSeq();
  }
}
