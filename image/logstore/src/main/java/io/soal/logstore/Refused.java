package io.soal.logstore;

import java.io.IOException;

/**
 * Thrown when the gate refuses a commit: nothing was sent to the table. The guard recognises this class behind Spark's own
 * exception, by its name, and the message begins with a code.
 */
public final class Refused extends IOException {
  private static final long serialVersionUID = 1L;

  /** Code and message, as the guard reads them. */
  final String reason;

  Refused(String code, String message) {
    super("SafeWriter [" + code + "]: " + message);
    reason = code + ": " + message;
  }
}
