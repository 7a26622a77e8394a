package io.soal.archive;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;

/**
 * Makes a jar with those classes of Hadoop and Spark that take a text for more than a text: here a value is the text that
 * was set, and SQL calls nothing but SQL.
 *
 * <p>Hadoop replaces <code>${env.NAME}</code> by a variable of the environment, and <code>${name}</code> by a system
 * property or by another value of its configuration, which may be a secret; the path of an input or an output is such a
 * value. Spark does so in its settings and in the options of catalogs (<code>${env:NAME}</code>,
 * <code>${system:name}</code>). An argument, or the name of an object in a bucket, would choose what is sent. The defaults
 * of Hadoop rely on it, so the jar also has these, with their values.
 *
 * <p>The log of a Delta table holds SQL, which whoever writes to the table runs: generated and default columns,
 * constraints. In SQL, {@code reflect} calls any method of Java, and {@code TRANSFORM} starts any program. The log, and
 * SQL, also give options to readers, which Spark makes settings of Hadoop, as Iceberg's writers of Parquet and ORC do with all
 * properties of a table ({@link io.soal.host.ReaderOptions}).
 *
 * <p>There are no settings against either. The jar comes first on the class path, so that its classes stand for the
 * originals.
 *
 * <p>{@code LiteralValues JAR SOURCE...}: the new jar, and those that have the originals.
 */
public final class LiteralValues {
  private static final String HADOOP = "org/apache/hadoop/conf/Configuration";
  private static final String SPARK = "org/apache/spark/internal/config/ConfigReader";
  private static final String PROVIDER = "org/apache/spark/internal/config/ConfigProvider";
  private static final String BOUND = "(L" + PROVIDER + ";)L" + SPARK + ";";
  private static final String GET = "(Ljava/lang/String;)Lscala/Option;";

  private static final String SQL = "org/apache/spark/sql/";
  private static final String CALL = SQL + "catalyst/expressions/CallMethodViaReflection";
  private static final String CHECKED = SQL + "catalyst/analysis/TypeCheckResult";
  private static final String ROW = SQL + "catalyst/InternalRow";
  private static final String PROGRAM = SQL + "execution/SparkScriptTransformationExec";
  private static final String SESSION = SQL + "internal/SessionState";
  private static final String PARQUET = "org/apache/iceberg/parquet/Parquet$WriteBuilder";
  private static final String ORC = "org/apache/iceberg/orc/ORC$WriteBuilder";
  private static final String SET = "(Ljava/lang/String;Ljava/lang/String;)V";
  private static final String CHECKED_SET = "(L" + HADOOP + ";Ljava/lang/String;Ljava/lang/String;)V";
  private static final String OPTIONS = "io/soal/host/ReaderOptions";
  private static final String REFUSED = "java/lang/UnsupportedOperationException";
  /** The methods of {@link #OPTIONS} that stand for the one call by which a class gives foreign names to Hadoop. */
  private static final Map<String, String> CHECKED_BY = Map.of(SESSION, "set", PARQUET, "setOfTable", ORC, "setOfTable");
  private static final String NO_CALL = "SQL does not call Java here (reflect, java_method, try_reflect), since the SQL of"
      + " a table's log would, too; call it in the script, as spark._jvm.java.lang.Math.abs(-1)";
  private static final String NO_PROGRAM = "SQL does not start programs here (TRANSFORM ... USING), since the SQL of a"
      + " table's log would, too; use a function in Python, as DataFrame.mapInPandas or RDD.pipe";

  /** The new code of methods, by class, name and type. Variable substitution in SQL has a setting, and stays. */
  private static final Map<String, Consumer<MethodVisitor>> CODE = Map.of(
      HADOOP + ".substituteVars(Ljava/lang/String;)Ljava/lang/String;", code -> returned(code, 1),
      SPARK + ".bindEnv" + BOUND, code -> returned(code, 0),
      SPARK + ".bindSystem" + BOUND, code -> returned(code, 0),
      SPARK + ".get" + GET, code -> {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitFieldInsn(Opcodes.GETFIELD, SPARK, "conf", "L" + PROVIDER + ";");
        code.visitVarInsn(Opcodes.ALOAD, 1);
        code.visitMethodInsn(Opcodes.INVOKEINTERFACE, PROVIDER, "get", GET, true);
        code.visitInsn(Opcodes.ARETURN);
      },
      // The analysis tells it well; but a plan that is optimised before it was checked is evaluated, too.
      CALL + ".checkInputDataTypes()L" + CHECKED + ";", code -> {
        made(code, CHECKED + "$TypeCheckFailure", NO_CALL);
        code.visitInsn(Opcodes.ARETURN);
      },
      CALL + ".evalInternal(L" + ROW + ";)Ljava/lang/Object;", code -> thrown(code, NO_CALL),
      PROGRAM + ".doExecute()Lorg/apache/spark/rdd/RDD;", code -> thrown(code, NO_PROGRAM));

  /** The defaults, which name each other in their values. */
  private static final String[] DEFAULTS = {"core-default.xml", "mapred-default.xml"};

  private static final String OF_ALL = "hadoop.tmp.dir";
  /** From where Java runs in a job; for settings that a script makes by itself, since the handler sets it for Spark's. */
  private static final String TEMPORARY = "../tmp";

  private static final Pattern DEFAULT =
      Pattern.compile("(<name>\\s*([^<]*?)\\s*</name>\\s*<value>)([^<]*)(?=</value>)");
  private static final Pattern NAME = Pattern.compile("\\$\\{(?:env\\.\\w+:-)?(?:\\$\\{)?([\\w.-]+)\\}+");

  private LiteralValues() {}

  public static void main(String[] arguments) throws IOException {
    Map<String, Consumer<MethodVisitor>> open = new HashMap<>(CODE);
    CHECKED_BY.forEach((host, by) -> open.put(
        host + ": Configuration.set",
        code -> code.visitMethodInsn(Opcodes.INVOKESTATIC, OPTIONS, by, CHECKED_SET, false)));
    Map<String, byte[]> made = new TreeMap<>();
    Map<String, String> values = new HashMap<>(Map.of(OF_ALL, TEMPORARY));
    for (String source : Arrays.asList(arguments).subList(1, arguments.length)) {
      try (ZipFile jar = new ZipFile(source)) {
        for (String name : new String[] {HADOOP, SPARK, CALL, PROGRAM, SESSION, PARQUET, ORC}) {
          ZipEntry entry = jar.getEntry(name + ".class");
          if (entry != null) {
            made.put(entry.getName(), literal(name, jar.getInputStream(entry).readAllBytes(), open));
          }
        }
        for (String name : DEFAULTS) {
          ZipEntry entry = jar.getEntry(name);
          if (entry != null) {
            made.put(name, withValues(jar.getInputStream(entry).readAllBytes(), values));
          }
        }
      }
    }
    if (!open.isEmpty()) {
      throw new IllegalStateException("not found: " + open.keySet()
          + "; find out how these versions replace ${...} in values, and what SQL calls");
    }
    String options = OPTIONS + ".class"; // the jar stands for itself: a Java without the log store has it, too
    try (InputStream ours = LiteralValues.class.getClassLoader().getResourceAsStream(options)) {
      made.put(options, ours.readAllBytes());
    }
    StampedJar.write(Path.of(arguments[0]), made);
  }

  /** Returns a class with the new code of its methods, each of which it takes from {@code open}. */
  private static byte[] literal(String host, byte[] original, Map<String, Consumer<MethodVisitor>> open) {
    ClassWriter writer = new ClassWriter(0);
    new ClassReader(original).accept(new ClassVisitor(Opcodes.ASM9, writer) {
      @Override
      public MethodVisitor visitMethod(int access, String name, String type, String generic, String[] errors) {
        MethodVisitor method = super.visitMethod(access, name, type, generic, errors);
        Consumer<MethodVisitor> code = open.remove(host + "." + name + type);
        if (code == null) {
          return CHECKED_BY.containsKey(host) ? withCheckedOptions(host, method, open) : method;
        }
        method.visitCode();
        code.accept(method);
        method.visitMaxs(3, 2);
        method.visitEnd();
        return null; // the original code is left out
      }
    }, 0);
    return writer.toByteArray();
  }

  private static MethodVisitor withCheckedOptions(
      String host, MethodVisitor method, Map<String, Consumer<MethodVisitor>> open) {
    return new MethodVisitor(Opcodes.ASM9, method) {
      @Override
      public void visitMethodInsn(int opcode, String owner, String name, String type, boolean isInterface) {
        if (owner.equals(HADOOP) && name.equals("set") && type.equals(SET)) {
          open.remove(host + ": Configuration.set").accept(mv); // a second one would be another way: null, the build ends
        } else {
          super.visitMethodInsn(opcode, owner, name, type, isInterface);
        }
      }
    };
  }

  private static void returned(MethodVisitor code, int variable) {
    code.visitVarInsn(Opcodes.ALOAD, variable);
    code.visitInsn(Opcodes.ARETURN);
  }

  private static void thrown(MethodVisitor code, String message) {
    made(code, REFUSED, message);
    code.visitInsn(Opcodes.ATHROW);
  }

  private static void made(MethodVisitor code, String type, String text) {
    code.visitTypeInsn(Opcodes.NEW, type);
    code.visitInsn(Opcodes.DUP);
    code.visitLdcInsn(text);
    code.visitMethodInsn(Opcodes.INVOKESPECIAL, type, "<init>", "(Ljava/lang/String;)V", false);
  }

  /** Returns a file of defaults with values in place of names, as far as {@code values} and the file itself know them. */
  private static byte[] withValues(byte[] original, Map<String, String> values) {
    String text = new String(original, StandardCharsets.UTF_8);
    DEFAULT.matcher(text).results().forEach(found -> values.putIfAbsent(found.group(2), found.group(3)));
    return DEFAULT.matcher(text).replaceAll(found -> Matcher.quoteReplacement(found.group(1)
        + (found.group(2).equals(OF_ALL) ? TEMPORARY : replaced(found.group(3), values))))
        .getBytes(StandardCharsets.UTF_8);
  }

  private static String replaced(String value, Map<String, String> values) {
    return NAME.matcher(value).replaceAll(name ->
        Matcher.quoteReplacement(values.getOrDefault(name.group(1), name.group())));
  }
}
