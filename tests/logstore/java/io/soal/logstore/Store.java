package io.soal.logstore;

import com.fasterxml.jackson.databind.JsonNode;
import io.delta.storage.LogStore;
import io.delta.storage.S3SingleDriverLogStore;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;

/** Runs single calls of the log store's other classes, on the S3 of the request's settings. */
final class Store {
  private static final Object SESSION = new Object();
  private static Configuration settings = new Configuration(false);
  private static Gate guarding;

  /** Whether the last call left its thread interrupted. */
  static boolean interrupted;

  /** The pauses between the last call's tries, in milliseconds; recorded instead of slept. */
  static final List<Long> pauses = new ArrayList<>();

  private Store() {}

  static Object answer(JsonNode request) throws Exception {
    String kind = request.get("do").asText();
    if (kind.equals("settings")) {
      settings = new Configuration();
      request.get("settings").properties().forEach(one -> settings.set(one.getKey(), one.getValue().asText()));
      return Map.of("done", true);
    }
    byte[] body = request.path("body").asText("").getBytes(StandardCharsets.UTF_8);
    if (kind.equals("guard")) {
      guarding = Gate.open(
          Gate.BLOCKS, Set.of(), SESSION,
          new Block(
              request.get("table").asText(), "key", 1, 0, 0, "note", "", "nonce",
              "sw-0123456789abcdef0123456789abcdef-1-0123456789abcdef-", false, false));
      return Map.of("done", true);
    }
    if (kind.equals("release")) {
      guarding.close(Set::of);
      return Map.of("done", true);
    }
    if (kind.equals("parse")) {
      return parsed(body, Pattern.compile(request.get("pattern").asText()));
    }
    if (kind.equals("unmarked")) {
      return Map.of("body", new String(CommitBody.withoutTransactions(body), StandardCharsets.UTF_8));
    }
    Path path = new Path(request.get("path").asText());
    if (kind.equals("surroundings")) {
      return surroundings(path, request);
    }
    if (request.path("interrupted").asBoolean()) {
      Thread.currentThread().interrupt();
    }
    pauses.clear();
    ConditionalPut objects = new ConditionalPut(settings, ms -> {
      pauses.add(ms);
      if (request.path("interruptedInPause").asBoolean()) {
        throw new InterruptedException("on order");
      }
    });
    try {
      switch (kind) {
        case "put":
          return Map.of("outcome", objects.put(path, body).name());
        case "read":
          byte[] found = objects.read(path);
          return found == null ? Map.of("missing", true) : Map.of("body", new String(found, StandardCharsets.UTF_8));
        case "write":
          write(path, request);
          return Map.of("done", true);
        case "list":
          return Map.of("found", listed(path, store(request)));
        case "folder":
          return Map.of("done", path.getFileSystem(settings).mkdirs(path));
        case "named":
          return Map.of(
              "version",
              LastVersions.firstOf(
                  path, request.get("id").asText(), request.get("last").asLong(), request.get("write").asText(), settings));
        case "landed":
          LastVersions.landed(path, request.get("version").asLong(), request.get("write").asText());
          return Map.of("done", true);
        case "qualities":
          return Map.of(
              "resolved", store(request).resolvePathOnPhysicalStorage(path, settings).toString(),
              "partial", store(request).isPartialWriteVisible(path, settings));
        case "checkpoint":
          checkpoint(path, body, request.path("overwrite").asBoolean(), request.path("cancel").asBoolean());
          return Map.of("done", true);
        default:
          throw new IllegalArgumentException(kind);
      }
    } finally {
      interrupted = Thread.interrupted();
    }
  }

  private static Object parsed(byte[] body, Pattern known) throws IOException {
    CommitBody commit = CommitBody.parse(body);
    Map<String, Object> found = new LinkedHashMap<>();
    found.put("operation", commit.operation);
    found.put("writesRows", commit.writesRows());
    found.put("undoObstacle", commit.undoObstacle(false));
    found.put("undoObstacleOfCreation", commit.undoObstacle(true));
    found.put("creation", commit.creation.toString());
    found.put("transactions", new TreeMap<>(commit.transactions));
    found.put("newPrefixes", new TreeSet<>(commit.newPrefixes(known)));
    return found;
  }

  private static Object surroundings(Path table, JsonNode request) {
    SparkConf conf = new SparkConf(false);
    request.get("conf").properties().forEach(one -> conf.set(one.getKey(), one.getValue().asText()));
    Configuration files = new Configuration(false);
    request.get("files").properties().forEach(one -> files.set(one.getKey(), one.getValue().asText()));
    return Surroundings.look(conf, files, table);
  }

  private static void write(Path path, JsonNode request) throws IOException {
    List<String> lines = new ArrayList<>();
    request.get("lines").forEach(line -> lines.add(line.asText()));
    store(request).write(path, lines.iterator(), request.get("overwrite").asBoolean(), settings);
  }

  /** Returns the log store, or Delta's own S3 store if the request has {@code stock}. */
  private static LogStore store(JsonNode request) {
    return request.path("stock").asBoolean()
        ? new S3SingleDriverLogStore(settings)
        : new ConditionalS3LogStore(settings);
  }

  /** Returns path, kind, length and modification time of each listed entry. */
  private static List<List<Object>> listed(Path first, LogStore store) throws IOException {
    List<List<Object>> found = new ArrayList<>();
    store.listFrom(first, settings).forEachRemaining(
        one -> found.add(List.of(
            one.getPath().toString(), one.isDirectory() ? "folder" : "file", one.getLen(),
            one.isDirectory() ? 0 : one.getModificationTime()))); // S3 has no time for a folder
    return found;
  }

  private static void checkpoint(Path path, byte[] body, boolean overwrite, boolean cancel) throws IOException {
    CancellableFSDataOutputStream out = new StreamFiles(path.getParent(), settings).createAtomic(path, overwrite);
    out.write(body);
    if (cancel) {
      out.cancel();
    }
    out.close(); // also after cancel, and then it must send nothing
  }

  /** Returns an error, its causes and its suppressed errors, one per line. */
  static List<String> told(Throwable error) {
    List<String> lines = new ArrayList<>();
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      lines.add(cause.getClass().getName() + ": " + cause.getMessage());
      for (Throwable other : cause.getSuppressed()) {
        lines.add("suppressed: " + other.getClass().getName() + ": " + other.getMessage());
      }
    }
    return lines;
  }
}
