package io.soal.logstore;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** A map that drops its eldest entry when it exceeds its size limit. */
public final class Bounded<K, V> extends LinkedHashMap<K, V> {
  private static final long serialVersionUID = 1L;

  private final int most;

  private Bounded(int most, boolean byUse) {
    super(16, 0.75f, byUse);
    this.most = most;
  }

  /** Returns a synchronized map that drops the entry inserted first. */
  public static <K, V> Map<K, V> map(int most) {
    return Collections.synchronizedMap(new Bounded<>(most, false));
  }

  /** Returns a synchronized map that drops the least recently used entry. */
  static <K, V> Map<K, V> ofLastUsed(int most) {
    return Collections.synchronizedMap(new Bounded<>(most, true));
  }

  @Override
  protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
    return size() > most;
  }
}
