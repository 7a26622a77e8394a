package io.soal.host;

import java.io.IOException;
import java.util.HashSet;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.PartitionPath;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Checks that a folder's files all lie in its partitions, if it has some.
 *
 * <p>Spark takes a folder named {@code p=1} for a partition, and then reads no file outside of the partitions. So one
 * object {@code in/p=1/c.csv} would hide all other files of {@code in}.
 */
public final class Partitions {
  private Partitions() {}

  /** @throws IOException if Spark would leave out a file with data that it has listed and that no filter excludes */
  public static void check(PartitioningAwareFileIndex index) throws IOException {
    if (index.partitionSpec().partitionColumns().isEmpty()) {
      return;
    }
    Set<Path> partitions = new HashSet<>();
    for (PartitionPath partition : CollectionConverters.asJava(index.partitionSpec().partitions())) {
      partitions.add(partition.path());
    }
    for (FileStatus file : CollectionConverters.asJava(index.leafFiles()).values()) {
      Path path = file.getPath();
      boolean isSummary = path.getName().startsWith("_") && !path.getName().contains("="); // as _metadata of Parquet
      boolean isData = file.getLen() > 0 && !isSummary && index.matchPathPattern(file);
      if (isData && !partitions.contains(path.getParent())) {
        throw new IOException(path + " lies in no partition, but there are partitions, such as "
            + partitions.iterator().next() + ": Spark would read only their files. Move or delete one of the two; or read"
            + " all with the option recursiveFileLookup, which makes no column of a folder's name; or leave files out by"
            + " the option pathGlobFilter");
      }
    }
  }
}
