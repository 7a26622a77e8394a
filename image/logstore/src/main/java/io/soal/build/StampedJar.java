package io.soal.build;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/** A reproducible jar: its bytes depend only on its entries. The class-data archive is tied to them. */
final class StampedJar {
  private static final long STAMP_MS = 1_577_836_800_000L; // 2020-01-01

  private StampedJar() {}

  /** Writes the entries (name to content) in the map's order. */
  static void write(Path jar, Map<String, byte[]> entries) throws IOException {
    try (OutputStream file = Files.newOutputStream(jar); ZipOutputStream target = new ZipOutputStream(file)) {
      for (Map.Entry<String, byte[]> one : entries.entrySet()) {
        ZipEntry entry = new ZipEntry(one.getKey());
        entry.setTime(STAMP_MS);
        target.putNextEntry(entry);
        target.write(one.getValue());
        target.closeEntry();
      }
    }
  }
}
