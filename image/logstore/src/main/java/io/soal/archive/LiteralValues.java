package io.soal.archive;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;

/**
 * Makes a jar with those classes of Hadoop and Spark that replace names in a value, so that a value is the text that was
 * set.
 *
 * <p>Hadoop replaces <code>${env.NAME}</code> by a variable of the environment, and <code>${name}</code> by a system
 * property or by another value of its configuration, which may be a secret; the path of an input or an output is such a
 * value. Spark does so in its settings and in the options of catalogs (<code>${env:NAME}</code>,
 * <code>${system:name}</code>). An argument, or the name of an object in a bucket, would choose what is sent. There are no
 * settings against it. The jar comes first on the class path, so that its classes stand for the originals.
 *
 * <p>{@code LiteralValues JAR SOURCE...}: the new jar, and those that have the originals.
 */
public final class LiteralValues {
  private static final String HADOOP = "org/apache/hadoop/conf/Configuration";
  private static final String SPARK = "org/apache/spark/internal/config/ConfigReader";
  private static final String PROVIDER = "org/apache/spark/internal/config/ConfigProvider";
  private static final String BOUND = "(L" + PROVIDER + ";)L" + SPARK + ";";
  private static final String GET = "(Ljava/lang/String;)Lscala/Option;";

  /** The new code of methods, by class, name and type. Variable substitution in SQL has a setting, and stays. */
  private static final Map<String, Consumer<MethodVisitor>> CODE = Map.of(
      HADOOP + ".substituteVars(Ljava/lang/String;)Ljava/lang/String;", code -> code.visitVarInsn(Opcodes.ALOAD, 1),
      SPARK + ".bindEnv" + BOUND, code -> code.visitVarInsn(Opcodes.ALOAD, 0),
      SPARK + ".bindSystem" + BOUND, code -> code.visitVarInsn(Opcodes.ALOAD, 0),
      SPARK + ".get" + GET, code -> {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitFieldInsn(Opcodes.GETFIELD, SPARK, "conf", "L" + PROVIDER + ";");
        code.visitVarInsn(Opcodes.ALOAD, 1);
        code.visitMethodInsn(Opcodes.INVOKEINTERFACE, PROVIDER, "get", GET, true);
      });

  private LiteralValues() {}

  public static void main(String[] arguments) throws IOException {
    Map<String, Consumer<MethodVisitor>> open = new HashMap<>(CODE);
    Map<String, byte[]> made = new TreeMap<>();
    for (String source : Arrays.asList(arguments).subList(1, arguments.length)) {
      try (ZipFile jar = new ZipFile(source)) {
        for (String name : new String[] {HADOOP, SPARK}) {
          ZipEntry entry = jar.getEntry(name + ".class");
          if (entry != null) {
            made.put(name, literal(name, jar.getInputStream(entry).readAllBytes(), open));
          }
        }
      }
    }
    if (!open.isEmpty()) {
      throw new IllegalStateException("not found: " + open.keySet()
          + "; find out how these versions replace ${...} in values");
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
          return method;
        }
        method.visitCode();
        code.accept(method);
        method.visitInsn(Opcodes.ARETURN);
        method.visitMaxs(2, 2);
        method.visitEnd();
        return null; // the original code is left out
      }
    }, 0);
    return writer.toByteArray();
  }
}
