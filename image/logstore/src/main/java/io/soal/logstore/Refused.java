package io.soal.logstore;

import java.io.IOException;

/** The gate did not let a commit through: nothing was sent to the table. {@code code} is what the guard decides by. */
public final class Refused extends IOException {
  private static final long serialVersionUID = 1L;

  private final String code;

  Refused(String code, String message) {
    super("SafeWriter [" + code + "]: " + message);
    this.code = code;
  }

  public String code() {
    return code;
  }
}
