package io.soal.build;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.Type;

/**
 * Writes a jar with patched classes of Hadoop, Spark and Iceberg: they use values as literal text, without
 * substitution, and SQL cannot call Java or start programs.
 *
 * <p>Hadoop replaces <code>${env.NAME}</code> by an environment variable, and <code>${name}</code> by a system property
 * or another configuration value, which may be a secret; input and output paths are such values. Spark does the same in
 * its settings and catalog options (<code>${env:NAME}</code>, <code>${system:name}</code>). So an argument or an
 * object's name could leak a secret. Hadoop's defaults rely on substitution, so the jar also contains these with the
 * values filled in.
 *
 * <p>A Delta table's log holds SQL (generated and default columns, constraints) that every writer of the table runs.
 * SQL's {@code reflect} calls any Java method, and {@code TRANSFORM} starts any program. The log and SQL also set
 * reader options, which Spark passes to Hadoop as settings; Iceberg's Parquet and ORC writers do so with all table
 * properties ({@link io.soal.host.ReaderOptions}).
 *
 * <p>The jar registers no file system but {@code file}; all others are those that settings name ({@code
 * fs.SCHEME.impl}), so that no path makes Java ask another server. {@link io.soal.host.ObjectKeys}, {@link
 * io.soal.host.ListedFiles}, {@link io.soal.host.ObjectOrFolder}, {@link io.soal.host.Partitions}, {@link
 * io.soal.host.StreamOutput}, {@link io.soal.host.ExistenceDefaults}, {@link io.soal.host.TableClasses} and {@link
 * io.soal.iceberg.OldMetadata} check other things that files, folders and tables name.
 *
 * <p>No setting turns any of this off. The jar comes first on the class path, so its classes replace the originals.
 *
 * <p>{@code PatchedClasses JAR SOURCE...}: the jar to write, and the jars that hold the originals.
 */
public final class PatchedClasses {
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
  private static final String FILES = "org/apache/hadoop/fs/FileSystem";
  private static final String LOCAL = "org/apache/hadoop/fs/LocalFileSystem";
  private static final String PATH = "org/apache/hadoop/fs/Path";
  private static final String S3A = "org/apache/hadoop/fs/s3a/S3AFileSystem";
  /** The listings' own way from keys to paths. */
  private static final String KEYS_OF_S3A = S3A + "$ContextAccessorsImpl";
  private static final String KEYS = "io/soal/host/ObjectKeys";
  private static final String STREAM = SQL + "execution/streaming/runtime/MetadataLogFileIndex";
  private static final String SOURCES = SQL + "execution/datasources/";
  private static final String SEQ = "scala/collection/immutable/Seq";
  private static final String LISTED = "io/soal/host/ListedFiles";
  /** The input format that {@link #LISTED} replaces in these classes. */
  private static final String STREAMS = "org/apache/spark/input/StreamInputFormat";
  private static final Set<String> INFERRING = Set.of(SOURCES + "csv/MultiLineCSVDataSource$",
      SOURCES + "json/MultiLineJsonDataSource$", SOURCES + "xml/MultiLineXmlDataSource$");
  private static final String SAME_PATH = "io/soal/host/ObjectOrFolder";
  /** Lists the files of Spark's tables and frames. */
  private static final String LISTING = "org/apache/spark/util/HadoopFSUtils$";
  /** The variable of its method with {@code listStatus}: whether a statement names the path. */
  private static final int IS_NAMED = 7;
  /** Lists what patterns stand for, and the paths of {@code textFile} and its like. */
  private static final String PATTERNS = "org/apache/hadoop/fs/Globber";
  /** List the folders of {@code textFile} and its like. */
  private static final List<String> INPUTS = List.of("org/apache/hadoop/mapred/FileInputFormat",
      "org/apache/hadoop/mapreduce/lib/input/FileInputFormat",
      "org/apache/hadoop/mapred/LocatedFileStatusFetcher$ProcessInputDirCallable");
  private static final String COMMITS = "org/apache/spark/internal/io/FileCommitProtocol";
  /** Delete what stands where they move their output. */
  private static final List<String> COMMITTERS = List.of("org/apache/spark/internal/io/HadoopMapReduceCommitProtocol",
      "org/apache/hadoop/mapreduce/lib/output/FileOutputCommitter");
  private static final String STATUS = "Lorg/apache/hadoop/fs/FileStatus;";
  private static final String STATUSES = "[" + STATUS;
  private static final String ITERATOR = "Lorg/apache/hadoop/fs/RemoteIterator;";
  private static final String INDEX = SOURCES + "PartitioningAwareFileIndex";
  private static final String PARTITIONS = "io/soal/host/Partitions";
  /** The image's variant slim has no DStreams. */
  private static final String DSTREAM = "org/apache/spark/streaming/dstream/FileInputDStream";
  private static final String OUTPUT = "io/soal/host/StreamOutput";
  private static final String DEFAULT_COLUMNS = SQL + "catalyst/util/ResolveDefaultColumns$";
  private static final String EXPRESSION = SQL + "catalyst/expressions/Expression";
  private static final String FIELD = SQL + "types/StructField";
  private static final String EXISTENCE = "io/soal/host/ExistenceDefaults";
  private static final String CATALOGS = "org/apache/iceberg/CatalogUtil";
  private static final String REMOVED =
      "(Lorg/apache/iceberg/io/FileIO;Lorg/apache/iceberg/TableMetadata;Lorg/apache/iceberg/TableMetadata;)V";
  private static final String OLD = "io/soal/iceberg/OldMetadata";
  private static final String PLACES = "org/apache/iceberg/LocationProviders";
  private static final String TABLE_CLASSES = "io/soal/host/TableClasses";
  private static final String SET = "(Ljava/lang/String;Ljava/lang/String;)V";
  private static final String CHECKED_SET = "(L" + HADOOP + ";Ljava/lang/String;Ljava/lang/String;)V";
  private static final String OPTIONS = "io/soal/host/ReaderOptions";
  private static final String REFUSED = "java/lang/UnsupportedOperationException";
  private static final String NO_CALL = "SQL does not call Java here (reflect, java_method, try_reflect), since the SQL of"
      + " a table's log would, too; call it in the script, as spark._jvm.java.lang.Math.abs(-1)";
  private static final String NO_PROGRAM = "SQL does not start programs here (TRANSFORM ... USING), since the SQL of a"
      + " table's log would, too; use a function in Python, as DataFrame.mapInPandas or RDD.pipe";

  /** The new method bodies, by class, name and type. SQL's variable substitution has a setting, so it stays. */
  private static final Map<String, Consumer<MethodVisitor>> CODE = Map.ofEntries(
      Map.entry(HADOOP + ".substituteVars(Ljava/lang/String;)Ljava/lang/String;", code -> returned(code, 1)),
      Map.entry(SPARK + ".bindEnv" + BOUND, code -> returned(code, 0)),
      Map.entry(SPARK + ".bindSystem" + BOUND, code -> returned(code, 0)),
      Map.entry(SPARK + ".get" + GET, code -> {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitFieldInsn(Opcodes.GETFIELD, SPARK, "conf", "L" + PROVIDER + ";");
        code.visitVarInsn(Opcodes.ALOAD, 1);
        code.visitMethodInsn(Opcodes.INVOKEINTERFACE, PROVIDER, "get", GET, true);
        code.visitInsn(Opcodes.ARETURN);
      }),
      // The analysis error reads better, but a plan that is optimised before its check reaches evalInternal.
      Map.entry(CALL + ".checkInputDataTypes()L" + CHECKED + ";", code -> {
        made(code, CHECKED + "$TypeCheckFailure", NO_CALL);
        code.visitInsn(Opcodes.ARETURN);
      }),
      Map.entry(CALL + ".evalInternal(L" + ROW + ";)Ljava/lang/Object;", code -> thrown(code, NO_CALL)),
      Map.entry(PROGRAM + ".doExecute()Lorg/apache/spark/rdd/RDD;", code -> thrown(code, NO_PROGRAM)),
      // Jars register file systems for http, webhdfs and others; a script's own Configuration still needs `file`.
      Map.entry(FILES + ".loadFileSystems()V", code -> {
        code.visitFieldInsn(Opcodes.GETSTATIC, FILES, "SERVICE_FILE_SYSTEMS", "Ljava/util/Map;");
        code.visitLdcInsn("file");
        code.visitLdcInsn(Type.getObjectType(LOCAL));
        code.visitMethodInsn(Opcodes.INVOKEINTERFACE, "java/util/Map", "put",
            "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;", true);
        code.visitInsn(Opcodes.POP);
        code.visitInsn(Opcodes.RETURN);
      }),
      Map.entry(STREAM + ".allFilesFromLog()" + STATUSES, code -> {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitFieldInsn(Opcodes.GETFIELD, STREAM, "path", "L" + PATH + ";");
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitFieldInsn(Opcodes.GETFIELD, STREAM, "allFilesFromLog", STATUSES);
        code.visitMethodInsn(
            Opcodes.INVOKESTATIC, OUTPUT, "within", "(L" + PATH + ";" + STATUSES + ")" + STATUSES, false);
        code.visitInsn(Opcodes.ARETURN);
      }),
      Map.entry(CATALOGS + ".deleteRemovedMetadataFiles" + REMOVED, code -> {
        for (int argument = 0; argument < 3; argument++) {
          code.visitVarInsn(Opcodes.ALOAD, argument);
        }
        code.visitMethodInsn(Opcodes.INVOKESTATIC, OLD, "delete", REMOVED, false);
        code.visitInsn(Opcodes.RETURN);
      }));

  /** What runs before a method, by the same names. */
  private static final Map<String, Consumer<MethodVisitor>> BEFORE = Map.of(
      PLACES + ".locationsFor(Ljava/lang/String;Ljava/util/Map;)Lorg/apache/iceberg/io/LocationProvider;", code -> {
        code.visitVarInsn(Opcodes.ALOAD, 1);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, TABLE_CLASSES, "check", "(Ljava/util/Map;)V", false);
      },
      KEYS_OF_S3A + ".keyToPath(Ljava/lang/String;)L" + PATH + ";", code -> {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitFieldInsn(Opcodes.GETFIELD, KEYS_OF_S3A, "this$0", "L" + S3A + ";");
        code.visitMethodInsn(Opcodes.INVOKEVIRTUAL, S3A, "getUri", "()Ljava/net/URI;", false);
        code.visitVarInsn(Opcodes.ALOAD, 1);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, KEYS, "check", "(Ljava/net/URI;Ljava/lang/String;)V", false);
      },
      S3A + ".initialize(Ljava/net/URI;L" + HADOOP + ";)V", code -> {
        code.visitVarInsn(Opcodes.ALOAD, 1);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, KEYS, "checkBucket", "(Ljava/net/URI;)V", false);
      },
      // Replaces the paths that each one stands for if patterns are off.
      SOURCES + "DataSource$.$anonfun$checkAndGlobPathIfNecessary$3(L" + HADOOP + ";ZL" + SEQ + ";ZL" + PATH + ";)L"
          + SEQ + ";", code -> {
        code.visitVarInsn(Opcodes.ALOAD, 4);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, LISTED, "itself", "(L" + PATH + ";)L" + SEQ + ";", false);
        code.visitVarInsn(Opcodes.ASTORE, 2);
      },
      DSTREAM + ".$anonfun$filesToRDD$1(L" + DSTREAM + ";Ljava/lang/String;)Lorg/apache/spark/rdd/RDD;", code -> {
        code.visitVarInsn(Opcodes.ALOAD, 1);
        code.visitMethodInsn(
            Opcodes.INVOKESTATIC, LISTED, "pattern", "(Ljava/lang/String;)Ljava/lang/String;", false);
        code.visitVarInsn(Opcodes.ASTORE, 1);
      },
      COMMITS + ".deleteWithJob(L" + FILES + ";L" + PATH + ";Z)Z", code -> {
        code.visitVarInsn(Opcodes.ALOAD, 1);
        code.visitVarInsn(Opcodes.ALOAD, 2);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, SAME_PATH, "check", "(L" + FILES + ";L" + PATH + ";)V", false);
      },
      INDEX + ".listFiles(L" + SEQ + ";L" + SEQ + ";)L" + SEQ + ";", code -> {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, PARTITIONS, "check", "(L" + INDEX + ";)V", false);
      },
      DEFAULT_COLUMNS + ".analyzeExistenceDefaultValue(L" + FIELD + ";)L" + EXPRESSION + ";", code -> {
        code.visitVarInsn(Opcodes.ALOAD, 1);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, EXISTENCE, "check", "(L" + FIELD + ";)V", false);
      });

  /** What replaces each call of a method in a class: the class, and the method with its type. */
  private static final Map<String, Consumer<MethodVisitor>> CALLS = calls();

  /** Our classes that the others call. */
  private static final List<String> OURS =
      List.of(OPTIONS, KEYS, LISTED, SAME_PATH, PARTITIONS, OUTPUT, EXISTENCE, OLD, TABLE_CLASSES);

  private PatchedClasses() {}

  private static Map<String, Consumer<MethodVisitor>> calls() {
    String path = "(L" + FILES + ";L" + PATH + ";";
    Map<String, Consumer<MethodVisitor>> calls = new HashMap<>();
    calls.put(SESSION + ": " + HADOOP + ".set" + SET, called(OPTIONS, "set", CHECKED_SET));
    calls.put(PARQUET + ": " + HADOOP + ".set" + SET, called(OPTIONS, "setOfTable", CHECKED_SET));
    calls.put(ORC + ": " + HADOOP + ".set" + SET, called(OPTIONS, "setOfTable", CHECKED_SET));
    calls.put(LISTING + ": " + FILES + ".listStatus(L" + PATH + ";)" + STATUSES, code -> {
      code.visitVarInsn(Opcodes.ILOAD, IS_NAMED);
      called(SAME_PATH, "listStatus", path + "Z)" + STATUSES).accept(code);
    });
    calls.put(LISTING + ": " + FILES + ".listFiles(L" + PATH + ";Z)" + ITERATOR,
        called(SAME_PATH, "listFiles", path + "Z)" + ITERATOR));
    calls.put(PATTERNS + ": " + FILES + ".getFileStatus(L" + PATH + ";)" + STATUS,
        called(SAME_PATH, "getFileStatus", path + ")" + STATUS));
    calls.put(PATTERNS + ": " + FILES + ".listStatus(L" + PATH + ";)" + STATUSES,
        called(SAME_PATH, "listStatus", path + ")" + STATUSES));
    INPUTS.forEach(host -> calls.put(host + ": " + FILES + ".listLocatedStatus(L" + PATH + ";)" + ITERATOR,
        called(SAME_PATH, "listLocatedStatus", path + ")" + ITERATOR)));
    COMMITTERS.forEach(host -> calls.put(host + ": " + FILES + ".delete(L" + PATH + ";Z)Z",
        called(SAME_PATH, "delete", path + "Z)Z")));
    return calls;
  }

  public static void main(String[] arguments) throws IOException {
    Map<String, Consumer<MethodVisitor>> open = new HashMap<>(CODE);
    open.putAll(BEFORE);
    open.putAll(CALLS);
    INFERRING.forEach(host -> open.put(
        host + ": StreamInputFormat", code -> code.visitLdcInsn(Type.getObjectType(LISTED))));
    Set<String> hosts = new LinkedHashSet<>();
    open.keySet().forEach(place -> hosts.add(place.split("[.:]")[0]));
    Map<String, byte[]> made = new TreeMap<>();
    HadoopDefaults defaults = new HadoopDefaults();
    for (String source : Arrays.asList(arguments).subList(1, arguments.length)) {
      try (ZipFile jar = new ZipFile(source)) {
        for (String name : hosts) {
          ZipEntry entry = jar.getEntry(name + ".class");
          if (entry != null) {
            made.put(entry.getName(), literal(name, jar.getInputStream(entry).readAllBytes(), open));
          }
        }
        for (String name : HadoopDefaults.FILES) {
          ZipEntry entry = jar.getEntry(name);
          if (entry != null) {
            made.put(name, defaults.withValues(jar.getInputStream(entry).readAllBytes()));
          }
        }
      }
    }
    if (!made.containsKey(DSTREAM + ".class")) {
      open.keySet().removeIf(place -> place.startsWith(DSTREAM));
    }
    if (!open.isEmpty()) {
      throw new IllegalStateException("not found: " + open.keySet()
          + "; find out how these versions replace ${...} in values, and what SQL calls");
    }
    for (String name : OURS) { // the jar needs no log store on the class path
      try (InputStream ours = PatchedClasses.class.getClassLoader().getResourceAsStream(name + ".class")) {
        made.put(name + ".class", ours.readAllBytes());
      }
    }
    StampedJar.write(Path.of(arguments[0]), made);
  }

  /** Returns the patched class; removes the patches that it applies from {@code open}. */
  private static byte[] literal(String host, byte[] original, Map<String, Consumer<MethodVisitor>> open) {
    ClassWriter writer = new ClassWriter(0);
    new ClassReader(original).accept(new ClassVisitor(Opcodes.ASM9, writer) {
      @Override
      public MethodVisitor visitMethod(int access, String name, String type, String generic, String[] errors) {
        MethodVisitor method = super.visitMethod(access, name, type, generic, errors);
        Consumer<MethodVisitor> code = open.remove(host + "." + name + type);
        if (code == null) {
          return INFERRING.contains(host) ? withListedFiles(host, method, open) : withOwnCalls(host, method, open);
        }
        if (BEFORE.containsKey(host + "." + name + type)) {
          return new MethodVisitor(Opcodes.ASM9, method) {
            @Override
            public void visitCode() {
              super.visitCode();
              code.accept(mv);
            }
          };
        }
        method.visitCode();
        code.accept(method);
        method.visitMaxs(3, 3);
        method.visitEnd();
        return null; // drops the original code
      }
    }, 0);
    return writer.toByteArray();
  }

  /** Replaces the {@link #CALLS} of a class. */
  private static MethodVisitor withOwnCalls(
      String host, MethodVisitor method, Map<String, Consumer<MethodVisitor>> open) {
    return new MethodVisitor(Opcodes.ASM9, method) {
      @Override
      public void visitMethodInsn(int opcode, String owner, String name, String type, boolean isInterface) {
        String call = host + ": " + owner + "." + name + type;
        open.remove(call);
        if (CALLS.containsKey(call)) {
          CALLS.get(call).accept(mv);
        } else {
          super.visitMethodInsn(opcode, owner, name, type, isInterface);
        }
      }
    };
  }

  private static MethodVisitor withListedFiles(
      String host, MethodVisitor method, Map<String, Consumer<MethodVisitor>> open) {
    return new MethodVisitor(Opcodes.ASM9, method) {
      @Override
      public void visitLdcInsn(Object value) {
        if (Type.getObjectType(STREAMS).equals(value)) {
          open.remove(host + ": StreamInputFormat").accept(mv); // a second one fails the build with a null pointer
        } else {
          super.visitLdcInsn(value);
        }
      }
    };
  }

  private static Consumer<MethodVisitor> called(String owner, String name, String type) {
    return code -> code.visitMethodInsn(Opcodes.INVOKESTATIC, owner, name, type, false);
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
}
