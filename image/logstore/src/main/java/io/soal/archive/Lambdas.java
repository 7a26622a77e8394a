package io.soal.archive;

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
 * Makes a jar in which the lambda expressions of some Scala classes are classes.
 *
 * <p>Scala's lambda expressions can be serialised. Java makes the class of such a one while it runs, thousands in a job,
 * and keeps none of them in a class-data archive. Here they are made beforehand, as Java would make them. The jar comes
 * first on the class path, so that its classes stand for those of the jars that they are from.
 *
 * <p>{@code Lambdas JAR LIST SOURCE...}: the new jar, the names of the classes, the jars to find them in.
 */
public final class Lambdas {
  private Lambdas() {}

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
            wanted.remove(name); // the first jar that has it counts, as on the class path
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
    System.out.printf("lambdas: %d of %d classes, %d lambdas, %d names unknown%n", hosts, hosts + wanted.size(),
        made.size() - hosts, wanted.size());
  }
}
