package io.soal.logstore;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * One attempt's lines in the journal of its job, the local file by which the supervisor learns of a process that is gone.
 *
 * @param path of the file; empty: there is none
 * @param nonce the attempt's, which each line bears
 */
public record Journal(String path, String nonce) {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Appends a line about an event, with its reason unless that is null. */
  public void tell(String event, String reason) throws IOException {
    if (path.isEmpty()) {
      return;
    }
    ObjectNode line =
        JSON.createObjectNode().put("event", event).put("atMs", System.currentTimeMillis()).put("nonce", nonce);
    if (reason != null) {
      line.put("reason", reason);
    }
    // The line break before it keeps a line that a full disk has torn from swallowing this one.
    byte[] text = ("\n" + line + "\n").getBytes(StandardCharsets.UTF_8);
    Files.write(Path.of(path), text, StandardOpenOption.APPEND);
  }

  /**
   * Tells the supervisor that a statement which writes rows was refused: a script may swallow the error, or nobody may ask
   * the thread for it.
   */
  public void tellRefused(String reason) {
    try {
      tell("refused", reason);
    } catch (IOException unwritten) {
      // The statement fails all the same.
    }
  }
}
