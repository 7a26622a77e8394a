package io.soal.logstore;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.hadoop.fs.Path;

/** An object store in memory that injects faults, and records its requests. */
final class MemoryObjects implements ObjectStore {
  private final Map<String, String> bodies;
  private final JsonNode plan;
  private final Consumer<JsonNode> meanwhile;
  private final Supplier<String> told;
  final List<List<Object>> calls = new ArrayList<>();

  /**
   * @param plan by path: {@code fault} (unreadable, gone, fails, denied, applied, breaks), {@code first} (a body that
   *     another writer puts there just before), {@code meanwhile} (a step to run before the answer)
   * @param told returns the gate's status and the number of commits in its journal, recorded at each put
   */
  MemoryObjects(Map<String, String> bodies, JsonNode plan, Consumer<JsonNode> meanwhile, Supplier<String> told) {
    this.bodies = bodies;
    this.plan = plan;
    this.meanwhile = meanwhile;
    this.told = told;
  }

  @Override
  public Outcome put(Path path, byte[] body) throws IOException {
    String text = new String(body, StandardCharsets.UTF_8);
    calls.add(List.of("put", path.toString(), text, told.get()));
    String fault = fault(path);
    if (fault.equals("breaks")) {
      throw new IllegalStateException("broken, on order");
    }
    if (fault.equals("fails")) {
      throw new IOException("no answer, on order");
    }
    if (fault.equals("denied")) {
      throw new Denied(path, new IOException("denied, on order"));
    }
    Outcome outcome = bodies.putIfAbsent(path.toString(), text) == null ? Outcome.LANDED : Outcome.TAKEN;
    if (fault.equals("applied")) {
      throw new IOException("the answer is lost, on order");
    }
    return outcome;
  }

  @Override
  public byte[] read(Path path) throws IOException {
    calls.add(List.of("read", path.toString()));
    String fault = fault(path);
    if (fault.equals("unreadable")) {
      throw new IOException("cannot be read, on order");
    }
    if (fault.equals("gone")) {
      bodies.remove(path.toString());
    }
    String body = bodies.get(path.toString());
    return body == null ? null : body.getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public CompletableFuture<byte[]> readLater(Path path) {
    String body = bodies.get(path.toString());
    return CompletableFuture.completedFuture(body == null ? null : body.getBytes(StandardCharsets.UTF_8));
  }

  private String fault(Path path) {
    JsonNode order = plan.path(path.toString());
    if (order.has("first")) {
      bodies.putIfAbsent(path.toString(), order.get("first").asText());
    }
    if (order.has("meanwhile")) {
      meanwhile.accept(((ObjectNode) order).remove("meanwhile")); // once
    }
    return order.path("fault").asText("");
  }
}
