package io.soal.logstore;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What the gate must know of a commit: its operation, its transaction actions, and which kinds of action it holds. */
final class CommitBody {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String ADD = "{\"add\"";

  final Map<String, Long> transactions = new HashMap<>();
  private final List<String> adds = new ArrayList<>();
  private final Set<String> removed = new HashSet<>();
  final StringBuilder creation = new StringBuilder();
  String operation = "";
  String mode = "";
  boolean changesMetadata;

  static CommitBody parse(byte[] body) throws IOException {
    CommitBody found = new CommitBody();
    for (String line : new String(body, StandardCharsets.UTF_8).split("\n")) {
      if (line.isBlank()) {
        continue;
      }
      if (line.startsWith(ADD)) {
        found.adds.add(line); // adds are most of a commit, and most of them are never looked at
        continue;
      }
      found.read(line, JSON.readTree(line));
    }
    return found;
  }

  /** The paths of files that were not in the table before: added, and not also removed, as under a deletion vector. */
  Set<String> newFiles() throws IOException {
    Set<String> paths = new HashSet<>();
    for (String line : adds) {
      paths.add(JSON.readTree(line).at("/add/path").asText());
    }
    paths.removeAll(removed);
    return paths;
  }

  private void read(String line, JsonNode action) {
    if (action.has("txn")) {
      transactions.put(action.at("/txn/appId").asText(), action.at("/txn/version").asLong());
    } else if (action.has("commitInfo")) {
      operation = action.at("/commitInfo/operation").asText();
      mode = action.at("/commitInfo/operationParameters/mode").asText();
    } else if (action.has("metaData") || action.has("protocol")) {
      changesMetadata = true;
      creation.append(line).append('\n');
    } else if (action.has("remove")) {
      removed.add(action.at("/remove/path").asText());
    }
  }
}
