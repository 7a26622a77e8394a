package io.soal.logstore;

import java.io.IOException;

/**
 * The gate did not let a commit through: nothing was sent to the table. The message begins with a code, by which the
 * guard recognises it in Spark's own exception.
 */
public final class Refused extends IOException {
  private static final long serialVersionUID = 1L;

  /** Code and message, as the guard is told them. */
  final String reason;

  Refused(String code, String message) {
    super("SafeWriter [" + code + "]: " + message);
    reason = code + ": " + message;
  }
}
