package io.soal.build;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Writes a jar in which the lambda expressions of the listed Scala classes are ordinary classes.
 *
 * <p>Scala's lambdas are serialisable. The JVM generates their classes at run time, thousands per job, and cannot store
 * them in a class-data archive. This program generates the same classes at build time. The jar comes first on the class
 * path, so its classes replace the originals.
 *
 * <p>{@code Closures JAR LIST SOURCE...}: the jar to write, the list of class names, the jars that hold the classes.
 */
public final class Closures {
  private Closures() {}

  public static void main(String[] arguments) throws IOException {
    Path jar = Path.of(arguments[0]);
    Set<String> wanted = new HashSet<>();
    for (String line : Files.readAllLines(Path.of(arguments[1]), StandardCharsets.UTF_8)) {
      if (!line.isBlank() && !line.startsWith("#")) {
        wanted.add(line.strip().replace('.', '/') + ".class");
      }
    }
    Map<String, byte[]> made = new TreeMap<>();
    int hosts = 0;
    for (String source : Arrays.asList(arguments).subList(2, arguments.length)) {
      try (ZipFile from = new ZipFile(source)) {
        for (String name : new ArrayList<>(wanted)) {
          ZipEntry entry = from.getEntry(name);
          if (entry != null) {
            wanted.remove(name); // the first jar wins, as on the class path
            Lowering lowering = Lowering.of(from.getInputStream(entry).readAllBytes());
            if (!lowering.classes().isEmpty()) {
              lowering.classes().forEach((host, body) -> made.put(host + ".class", body));
              hosts++;
            }
          }
        }
      }
    }
    StampedJar.write(jar, made);
    System.out.printf("closures: %d of %d classes, %d lambdas, %d names unknown%n", hosts, hosts + wanted.size(),
        made.size() - hosts, wanted.size());
  }
}
