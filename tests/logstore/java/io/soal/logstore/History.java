package io.soal.logstore;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Stream;

/** Plays one history of blocks and commits, in a world of its own. Names identify threads, sessions and blocks. */
final class History {
  private static final Map<String, ExecutorService> THREADS = new HashMap<>();

  private final Blocks blocks = new Blocks();
  private final Map<String, Gate> gates = new LinkedHashMap<>();
  private final Map<String, Path> journals = new HashMap<>();
  private final Map<String, Object> sessions = new TreeMap<>();
  private final Map<String, String> bodies = new TreeMap<>();

  /** Returns what an observer sees after each step. */
  List<Object> play(JsonNode steps) throws Exception {
    List<Object> seen = new ArrayList<>();
    for (JsonNode step : steps) {
      Map<String, Object> now = new LinkedHashMap<>();
      now.put("outcome", take(step, now));
      now.put("blocks", states());
      List<String> busy = new ArrayList<>();
      sessions.forEach((name, session) -> {
        if (blocks.busy(session)) {
          busy.add(name);
        }
      });
      now.put("busy", busy);
      seen.add(now);
    }
    Map<String, Object> end = new LinkedHashMap<>();
    end.put("bodies", bodies);
    Map<String, String> lines = new TreeMap<>();
    for (Map.Entry<String, Path> journal : journals.entrySet()) {
      lines.put(journal.getKey(), Files.readString(journal.getValue()));
      Files.delete(journal.getValue());
    }
    end.put("journals", lines);
    seen.add(end);
    return seen;
  }

  private String take(JsonNode step, Map<String, Object> now) throws Exception {
    switch (step.get("do").asText()) {
      case "open":
        return on(step, () -> open(step));
      case "close":
        gates.get(step.get("block").asText()).close(() -> numbers(step.get("running")));
        return "done";
      case "shut":
        gates.get(step.get("block").asText()).shut("on order");
        return "done";
      case "land":
        bodies.put(step.get("path").asText(), step.get("body").asText());
        return "done";
      case "drop":
        bodies.remove(step.get("path").asText());
        return "done";
      default:
        return on(step, () -> commit(step, now));
    }
  }

  private static String on(JsonNode step, Callable<String> work) throws Exception {
    return THREADS.computeIfAbsent(step.get("thread").asText(), name -> Executors.newSingleThreadExecutor(task -> {
      Thread thread = new Thread(task, name);
      thread.setDaemon(true);
      return thread;
    })).submit(work).get();
  }

  private String open(JsonNode step) throws IOException {
    String name = step.get("block").asText();
    String kind = step.get("journal").asText();
    Path journal = Files.createTempFile("journal", ".jsonl");
    if (!kind.equals("there")) {
      Files.delete(journal);
    }
    try {
      Block block = new Block(
          step.get("table").asText(), step.get("key").asText(), step.get("epoch").asLong(), step.get("claimed_at").asLong(),
          step.get("latest").asLong(), step.get("note").asText(), kind.isEmpty() ? "" : journal.toString(),
          step.get("nonce").asText(), step.get("prefix").asText(), step.get("undoable").asBoolean(),
          step.get("skipped").asBoolean());
      gates.put(name, Gate.open(blocks, numbers(step.get("ran_before")), session(step), block));
    } catch (IllegalStateException busy) {
      Files.deleteIfExists(journal);
      return "busy";
    }
    if (kind.equals("there")) {
      journals.put(name, journal);
    }
    return "done";
  }

  private String commit(JsonNode step, Map<String, Object> now) {
    Statement statement = new Statement(Thread.currentThread(), session(step), numbers(step.get("executions")));
    byte[] body = step.get("body").asText().getBytes(StandardCharsets.UTF_8);
    String path = step.get("path").asText();
    String[] passing = {""};
    MemoryObjects objects = new MemoryObjects(bodies, step.get("plan"), this::meanwhile, () -> told(passing[0]));
    now.put("calls", objects.calls);
    now.put("gate", "");
    try {
      Gate gate = blocks.find(step.get("table").asText(), body, () -> statement);
      gates.forEach((name, one) -> passing[0] = one == gate ? name : passing[0]);
      now.put("gate", passing[0]);
      ConditionalS3LogStore.commit(gate, new org.apache.hadoop.fs.Path(path), step.get("target").asLong(), body, objects);
      return "done";
    } catch (Refused refused) {
      return refused.getMessage().replaceFirst("^SafeWriter \\[(\\w+)\\]: .+", "refused: $1");
    } catch (FileAlreadyExistsException taken) {
      return "taken";
    } catch (IOException error) {
      return "failed";
    } catch (IllegalStateException error) {
      return "broken";
    }
  }

  private void meanwhile(JsonNode step) {
    Gate gate = gates.get(step.get("block").asText());
    if (step.get("do").asText().equals("shut")) {
      gate.shut("on order, meanwhile");
    } else {
      gate.close(() -> numbers(step.get("running")));
    }
  }

  private String told(String block) {
    if (block.isEmpty()) {
      return "";
    }
    long announced = 0;
    if (journals.containsKey(block)) {
      try (Stream<String> lines = Files.lines(journals.get(block))) {
        announced = lines.filter(line -> line.contains("commit_passed")).count();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
    return seen(gates.get(block)).get("status").asText() + ", announced " + announced;
  }

  private Object session(JsonNode step) {
    return step.get("session").isNull() ? null : sessions.computeIfAbsent(step.get("session").asText(), name -> new Object());
  }

  private static Set<Long> numbers(JsonNode list) {
    Set<Long> found = new LinkedHashSet<>();
    list.forEach(number -> found.add(number.asLong()));
    return found;
  }

  private Map<String, Object> states() {
    Map<String, Object> found = new LinkedHashMap<>();
    gates.forEach((name, gate) -> found.put(name, seen(gate)));
    return found;
  }

  private static JsonNode seen(Gate gate) {
    try {
      return new ObjectMapper().readTree(gate.seen());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
