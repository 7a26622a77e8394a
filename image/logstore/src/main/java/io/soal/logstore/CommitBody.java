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
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A parsed Delta commit, as far as the gate needs it: operation, transaction actions, and kinds of actions. */
final class CommitBody {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String ADD = "{\"add\"";
  private static final String TRANSACTION = "\"txn\"";
  private static final Pattern KEY = Pattern.compile("sw-[0-9a-f]{32}");

  /** Operations that write rows. Any other commit (maintenance, properties, a stream's own) is not a block's write. */
  static final Set<String> GUARDED = new TreeSet<>(List.of(
      "WRITE", "MERGE", "UPDATE", "DELETE", "TRUNCATE", "CREATE TABLE", "CREATE TABLE AS SELECT", "REPLACE TABLE",
      "REPLACE TABLE AS SELECT", "CREATE OR REPLACE TABLE", "CREATE OR REPLACE TABLE AS SELECT"));

  /** Operations that no block may hold, although they change the table's rows. */
  static final Set<String> CHANGE_ROWS = Set.of("RESTORE", "CLONE", "CONVERT");

  /** The domain of the row ids' high-water mark, which each commit with new rows raises. */
  private static final String ROW_IDS = "delta.rowTracking";

  final Map<String, Long> transactions = new HashMap<>();
  private final List<String> adds = new ArrayList<>();
  private final Set<String> removed = new HashSet<>();
  final StringBuilder creation = new StringBuilder();
  private final StringBuilder told = new StringBuilder();
  String operation = "";
  private boolean changesTable;

  static CommitBody parse(byte[] body) throws IOException {
    CommitBody found = new CommitBody();
    for (String line : new String(body, StandardCharsets.UTF_8).split("\n")) {
      if (line.isBlank()) {
        continue;
      }
      if (line.startsWith(ADD)) {
        found.adds.add(line); // most lines are adds, and most adds are never parsed
        continue;
      }
      found.read(line, JSON.readTree(line));
    }
    return found;
  }

  /**
   * Returns the commit without transaction actions of blocks: only the block's own gate may add one.
   *
   * <p>A skipped block sets such a transaction on its session, so that Delta skips its write. Statements of this
   * session on other tables, and of sessions cloned from it, would commit it there, and Delta would skip later ones.
   */
  static byte[] withoutTransactions(byte[] body) throws IOException {
    String text = new String(body, StandardCharsets.UTF_8);
    if (!text.contains(TRANSACTION)) {
      return body;
    }
    StringBuilder kept = new StringBuilder();
    for (String line : text.split("(?<=\n)")) {
      if (!line.contains(TRANSACTION) || !KEY.matcher(JSON.readTree(line).at("/txn/appId").asText()).matches()) {
        kept.append(line);
      }
    }
    return kept.toString().getBytes(StandardCharsets.UTF_8);
  }

  /** Returns the commitInfo and txn actions, one per line. */
  String withoutFiles() {
    return told.toString();
  }

  /** Returns the total size of the added files, in bytes. */
  long addedBytes() throws IOException {
    long sum = 0;
    for (String line : adds) {
      sum += JSON.readTree(line).at("/add/size").asLong();
    }
    return sum;
  }

  boolean writesRows() {
    return GUARDED.contains(operation);
  }

  /**
   * Returns why no undo could take this commit back, or null. An undo only removes files that the commit added; {@code
   * undo_obstacle} in {@code safewriter/tables/delta/undo.py} is the settler's side of the same rule.
   *
   * @param creates whether the commit creates the table
   */
  String undoObstacle(boolean creates) {
    if (!removed.isEmpty()) {
      return "it removes files";
    }
    if (changesTable && !creates) {
      return "it changes the table's schema or properties";
    }
    String own = transactions.keySet().stream().filter(name -> !KEY.matcher(name).matches()).findFirst().orElse(null);
    return own == null ? null : "it holds the script's own transaction " + own;
  }

  /**
   * Returns the prefixes matched by {@code known} with which names of added files begin, except files that the commit
   * also removes (an add with a new deletion vector). Folders do not count: they hold partition values, which are data.
   */
  Set<String> newPrefixes(Pattern known) throws IOException {
    Set<String> paths = new HashSet<>();
    for (String line : adds) {
      paths.add(JSON.readTree(line).at("/add/path").asText());
    }
    paths.removeAll(removed);
    Set<String> prefixes = new HashSet<>();
    for (String path : paths) {
      Matcher prefix = known.matcher(path.substring(path.lastIndexOf('/') + 1));
      if (prefix.lookingAt()) {
        prefixes.add(prefix.group());
      }
    }
    return prefixes;
  }

  private void read(String line, JsonNode action) {
    if (action.has("txn") || action.has("commitInfo")) {
      told.append(line).append('\n');
    }
    if (action.has("txn")) {
      transactions.put(action.at("/txn/appId").asText(), action.at("/txn/version").asLong());
    } else if (action.has("commitInfo")) {
      operation = action.at("/commitInfo/operation").asText();
    } else if (action.has("metaData") || action.has("protocol")) {
      changesTable = true;
      creation.append(line).append('\n');
    } else if (action.has("domainMetadata")) { // clustering, for example
      changesTable |= !action.at("/domainMetadata/domain").asText().equals(ROW_IDS);
      creation.append(line).append('\n');
    } else if (action.has("remove")) {
      removed.add(action.at("/remove/path").asText());
    }
  }
}
