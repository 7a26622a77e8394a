package io.soal.logstore;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** A map that forgets its eldest entry once it holds too many. */
public final class Bounded<K, V> extends LinkedHashMap<K, V> {
  private static final long serialVersionUID = 1L;

  private final int most;

  private Bounded(int most, boolean byUse) {
    super(16, 0.75f, byUse);
    this.most = most;
  }

  /** Returns one for several threads, of which the eldest entry is the one that was put in first. */
  public static <K, V> Map<K, V> map(int most) {
    return Collections.synchronizedMap(new Bounded<>(most, false));
  }

  /** Returns one for several threads, of which the eldest entry is the one that was not used for longest. */
  static <K, V> Map<K, V> ofLastUsed(int most) {
    return Collections.synchronizedMap(new Bounded<>(most, true));
  }

  @Override
  protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
    return size() > most;
  }
}
