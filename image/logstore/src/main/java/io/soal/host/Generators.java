package io.soal.host;

import java.lang.reflect.Field;
import java.security.SecureRandom;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Seeds the random generators of this JVM anew, with bytes from outside.
 *
 * <p>Copies of a memory snapshot have the same generators, and may get the same bytes from their kernels. UUIDs that
 * are equal in two copies would be the same file name, or the same snapshot id, in one table.
 */
final class Generators {
  private Generators() {}

  /** @param outside what no other copy of this memory has been given */
  static void renew(byte[] outside) throws ReflectiveOperationException {
    SecureRandom secure = new SecureRandom();
    secure.setSeed(outside); // NativePRNG, the default on Linux, mixes it into all instances, and with it into UUIDs
    ((Random) Hidden.of(Class.forName("java.lang.Math$RandomNumberGeneratorHolder"), "randomNumberGenerator"))
        .setSeed(secure.nextLong());
    scala.util.Random$.MODULE$.setSeed(secure.nextLong());
    ((AtomicLong) Hidden.of(ThreadLocalRandom.class, "seeder")).set(secure.nextLong());
    Field probe = Thread.class.getDeclaredField("threadLocalRandomProbe");
    probe.setAccessible(true);
    for (Thread thread : Thread.getAllStackTraces().keySet()) {
      probe.setInt(thread, 0); // the thread takes a seed from the seeder when it draws again
    }
  }
}
