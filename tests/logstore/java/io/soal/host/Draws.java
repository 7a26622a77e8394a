package io.soal.host;

import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.security.Provider;
import java.security.SecureRandom;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;

/**
 * {@code Draws OUTSIDE}: a copy of a JVM whose generators are in a known state, and whose kernel gives each copy the
 * same bytes; prints what each draws after {@link Generators#renew}.
 */
public final class Draws {
  /** All instances have one state, as those of NativePRNG. */
  public static final class EqualInCopies extends SecureRandomSpi {
    private static final Random STATE = new Random(7);

    @Override
    protected void engineSetSeed(byte[] seed) {
      STATE.setSeed(STATE.nextLong() ^ new String(seed, StandardCharsets.UTF_8).hashCode());
    }

    @Override
    protected void engineNextBytes(byte[] bytes) {
      STATE.nextBytes(bytes);
    }

    @Override
    protected byte[] engineGenerateSeed(int size) {
      return new byte[size];
    }
  }

  private Draws() {}

  public static void main(String[] arguments) throws ReflectiveOperationException {
    Provider provider = new Provider("copies", "1", "") {};
    provider.put("SecureRandom.EqualInCopies", EqualInCopies.class.getName());
    Security.insertProviderAt(provider, 1);
    UUID.randomUUID();
    Math.random();
    ((Random) Hidden.of(Class.forName("java.lang.Math$RandomNumberGeneratorHolder"), "randomNumberGenerator")).setSeed(7);
    scala.util.Random$.MODULE$.setSeed(7);
    ThreadLocalRandom.current();
    ((AtomicLong) Hidden.of(ThreadLocalRandom.class, "seeder")).set(7);
    Field seed = Thread.class.getDeclaredField("threadLocalRandomSeed");
    seed.setAccessible(true);
    seed.setLong(Thread.currentThread(), 7);
    Generators.renew(arguments[0].getBytes(StandardCharsets.UTF_8));
    System.out.println("SecureRandom " + new SecureRandom().nextLong());
    System.out.println("UUID " + UUID.randomUUID());
    System.out.println("Math.random " + Math.random());
    System.out.println("scala.util.Random " + scala.util.Random$.MODULE$.nextLong());
    System.out.println("ThreadLocalRandom " + ThreadLocalRandom.current().nextLong());
  }
}
