package io.soal.host;

import java.lang.reflect.Field;

/** Static fields that a class of Java or Hadoop shows to nobody. */
final class Hidden {
  private Hidden() {}

  static Object of(Class<?> type, String name) throws ReflectiveOperationException {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(null);
  }
}
