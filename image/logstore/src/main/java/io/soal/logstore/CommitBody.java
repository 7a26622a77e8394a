package io.soal.logstore;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/** What the gate must know of a commit: its operation, its transaction actions, and which kinds of action it holds. */
final class CommitBody {
  private static final ObjectMapper JSON = new ObjectMapper();

  final Map<String, Long> transactions = new HashMap<>();
  final StringBuilder creation = new StringBuilder();
  String operation = "";
  String mode = "";
  boolean changesMetadata;
  boolean removesFiles;

  static CommitBody parse(byte[] body) throws IOException {
    CommitBody found = new CommitBody();
    for (String line : new String(body, StandardCharsets.UTF_8).split("\n")) {
      if (line.startsWith("{\"add\"") || line.isBlank()) {
        continue; // adds are most of a commit, and nothing in them matters here
      }
      found.read(line, JSON.readTree(line));
    }
    return found;
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
    } else if (action.has("remove") || action.has("cdc")) {
      removesFiles = true;
    }
  }
}
