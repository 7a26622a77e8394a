package io.soal.logstore;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Writes one attempt's lines to the job's journal, a local file that the supervisor reads after the process's end.
 *
 * @param path of the file; empty: no journal
 * @param nonce of the attempt, in each line
 */
public record Journal(String path, String nonce) {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Appends a line with the event, the time, the nonce, and the reason unless that is null. */
  public void tell(String event, String reason) throws IOException {
    if (path.isEmpty()) {
      return;
    }
    ObjectNode line =
        JSON.createObjectNode().put("event", event).put("atMs", System.currentTimeMillis()).put("nonce", nonce);
    if (reason != null) {
      line.put("reason", reason);
    }
    // The leading line break separates this line from one that a full disk has truncated.
    byte[] text = ("\n" + line + "\n").getBytes(StandardCharsets.UTF_8);
    Files.write(Path.of(path), text, StandardOpenOption.APPEND);
  }

  /**
   * Reports a refused statement to the supervisor: a script may swallow the error, or never join the thread that got
   * it.
   */
  public void tellRefused(String reason) {
    try {
      tell("refused", reason);
    } catch (IOException unwritten) {
      // The statement fails anyway.
    }
  }
}
