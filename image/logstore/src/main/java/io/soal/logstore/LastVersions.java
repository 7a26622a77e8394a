package io.soal.logstore;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.InterruptedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.functional.FutureIO;
import org.apache.spark.sql.SparkSession;

/**
 * The write keys in the last versions of a table's log: the witness for a write whose document is gone.
 *
 * <p>A version never changes, so this JVM reads each once, and its own blocks' versions never. A session that writes a
 * table block after block sends no request.
 */
public final class LastVersions {
  /** How many versions before a claim are read. */
  static final int VERSIONS = 100;

  private static final int TABLES_MAX = 100;
  private static final int READERS = 16;
  private static final Pattern KEY = Pattern.compile("sw-[0-9a-f]{32}");

  private static final Map<String, LastVersions> TABLES = Bounded.ofLastUsed(TABLES_MAX);

  private String id;
  private final TreeMap<Long, Set<String>> named = new TreeMap<>();

  private LastVersions(String id) {
    this.id = id;
  }

  /**
   * Searches the last versions of a table for a write.
   *
   * @return the first version that names the key, in a commit, a fence or an undo; -1: none does
   * @throws IOException if a version cannot be read
   */
  public static long firstOf(SparkSession session, LatestSnapshot before, String key) throws IOException {
    return firstOf(before.log(), before.id(), before.version(), key, session.sparkContext().hadoopConfiguration());
  }

  /** @param id of the table: a recreated table has another log at the same path */
  static long firstOf(Path log, String id, long last, String key, Configuration conf) throws IOException {
    String place = Block.canonical(log.toString());
    if (last < 0) {
      TABLES.put(place, new LastVersions("")); // for the versions that this JVM is going to write
      return -1;
    }
    LastVersions table = TABLES.compute(
        place, (name, known) -> known != null && known.isOf(id) ? known : new LastVersions(id));
    return table.first(log, last, key, conf);
  }

  /** Records a version that a block of this JVM has committed. */
  static void landed(Path slot, long version, String key) {
    LastVersions table = TABLES.get(Block.canonical(slot.getParent().toString()));
    if (table != null) {
      table.put(version, Set.of(key));
    }
  }

  /** Compares the table's id; an entry made before the table existed takes the first id that it is compared with. */
  private boolean isOf(String table) {
    id = id.isEmpty() ? table : id;
    return id.equals(table);
  }

  private synchronized void put(long version, Set<String> keys) {
    named.put(version, keys);
    named.headMap(version - VERSIONS).clear();
  }

  private synchronized long first(Path log, long last, String key, Configuration conf) throws IOException {
    long oldest = Math.max(0, last - VERSIONS + 1);
    if (named.subMap(oldest, last + 1).size() < last + 1 - oldest) {
      read(log, oldest, last, conf);
    }
    return named.subMap(oldest, last + 1).entrySet().stream()
        .filter(one -> one.getValue().contains(key))
        .map(Map.Entry::getKey)
        .findFirst()
        .orElse(-1L);
  }

  /** Reads the unknown versions. The oldest may be gone by the log's retention: they count as empty. */
  private void read(Path log, long oldest, long last, Configuration conf) throws IOException {
    Path first = new Path(log, String.format(Locale.ROOT, "%020d.json", oldest));
    Map<Long, FileStatus> listed = new TreeMap<>();
    Iterator<FileStatus> names = new ConditionalS3LogStore(conf).listFrom(first, conf);
    while (names.hasNext()) {
      FileStatus one = names.next();
      Matcher commit = ConditionalS3LogStore.COMMIT.matcher(one.getPath().getName());
      if (commit.matches() && Long.parseLong(commit.group(1)) <= last) {
        listed.put(Long.parseLong(commit.group(1)), one);
      }
    }
    if (!listed.containsKey(last)) {
      throw new IOException("version " + last + " of " + log + " is gone: the table was dropped or replaced");
    }
    long begin = oldest;
    for (; !listed.containsKey(begin); begin++) {
      named.put(begin, Set.of());
    }
    for (long version = begin; version < last; version++) {
      if (!listed.containsKey(version)) { // retention takes the oldest only
        throw new IOException("version " + version + " of " + log + " is gone, and older ones are there");
      }
    }
    listed.keySet().removeAll(named.keySet());
    readAll(listed, conf);
  }

  private void readAll(Map<Long, FileStatus> wanted, Configuration conf) throws IOException {
    ExecutorService readers = Executors.newFixedThreadPool(READERS, work -> {
      Thread reader = new Thread(work, "safewriter-last-versions");
      reader.setDaemon(true);
      return reader;
    });
    try {
      List<Map.Entry<Long, Future<Set<String>>>> reading = new ArrayList<>();
      wanted.forEach((version, file) -> reading.add(Map.entry(version, readers.submit(() -> keysIn(file, conf)))));
      for (Map.Entry<Long, Future<Set<String>>> one : reading) {
        named.put(one.getKey(), one.getValue().get());
      }
    } catch (ExecutionException error) {
      throw new IOException("cannot tell which writes the table holds: " + error.getCause(), error.getCause());
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException("interrupted while the table's last versions were read");
    } finally {
      readers.shutdownNow();
    }
  }

  /** Reads only up to the first file action: the keys come before these, and there may be many. */
  private static Set<String> keysIn(FileStatus file, Configuration conf) throws IOException {
    Set<String> keys = new HashSet<>();
    try (FSDataInputStream in =
            FutureIO.awaitFuture(file.getPath().getFileSystem(conf).openFile(file.getPath()).withFileStatus(file).build());
        BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
      String line = lines.readLine();
      while (line != null && !line.startsWith("{\"add\"") && !line.startsWith("{\"remove\"")) {
        KEY.matcher(line).results().forEach(found -> keys.add(found.group()));
        line = lines.readLine();
      }
    }
    return keys;
  }
}
