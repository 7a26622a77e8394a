package io.soal.build;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Fills in the values of Hadoop's files of defaults, which refer to each other. */
final class HadoopDefaults {
  static final List<String> FILES = List.of("core-default.xml", "mapred-default.xml");

  private static final String OF_ALL = "hadoop.tmp.dir";
  /** Relative to the JVM's working directory. For a script's own Configuration: the handler sets it for Spark's. */
  private static final String TEMPORARY = "../tmp";

  private static final Pattern DEFAULT =
      Pattern.compile("(<name>\\s*([^<]*?)\\s*</name>\\s*<value>)([^<]*)(?=</value>)");
  private static final Pattern NAME = Pattern.compile("\\$\\{(?:env\\.\\w+:-)?(?:\\$\\{)?([\\w.-]+)\\}+");

  /** The file systems that the defaults name, but for those of the local disk and S3. */
  private static final Pattern FILE_SYSTEM = Pattern.compile(
      "<property>\\s*<name>fs\\.(AbstractFileSystem\\.)?(?!file|s3a)\\w+\\.impl</name>.*?</property>", Pattern.DOTALL);

  private final Map<String, String> values = new HashMap<>(Map.of(OF_ALL, TEMPORARY));

  /** Returns the next file with each reference replaced that it or an earlier one defines. */
  byte[] withValues(byte[] original) {
    String text = FILE_SYSTEM.matcher(new String(original, StandardCharsets.UTF_8)).replaceAll("");
    DEFAULT.matcher(text).results().forEach(found -> values.putIfAbsent(found.group(2), found.group(3)));
    return DEFAULT.matcher(text).replaceAll(found -> Matcher.quoteReplacement(found.group(1)
        + (found.group(2).equals(OF_ALL) ? TEMPORARY : replaced(found.group(3)))))
        .getBytes(StandardCharsets.UTF_8);
  }

  private String replaced(String value) {
    return NAME.matcher(value).replaceAll(name ->
        Matcher.quoteReplacement(values.getOrDefault(name.group(1), name.group())));
  }
}
