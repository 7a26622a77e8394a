import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.zip.Deflater;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;
import jdk.internal.org.objectweb.asm.ClassReader;
import jdk.internal.org.objectweb.asm.ClassVisitor;
import jdk.internal.org.objectweb.asm.ClassWriter;
import jdk.internal.org.objectweb.asm.Label;
import jdk.internal.org.objectweb.asm.MethodVisitor;
import jdk.internal.org.objectweb.asm.Opcodes;

/**
 * Removes from jars the parts that nothing in the image reads: {@code java Slim.java LIST JAR...}.
 *
 * <p>The names of local variables, which only debuggers ask for, and the entries that LIST names, a glob a line: {@code #}
 * begins a comment, and a glob with {@code only on ARCHITECTURE} behind it counts only there. Line numbers stay, and the names in constructors, by which Jackson fills the case classes of Scala
 * (through Paranamer). Signed jars stay as they are: a change would break their signatures.
 */
final class Slim {
    private static final int API = Opcodes.ASM8;
    private static final String ARCHITECTURE = System.getProperty("os.arch");

    public static void main(String[] arguments) throws IOException {
        List<PathMatcher> unwanted = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.strip().split(" only on ");
            if (!line.isBlank() && !line.startsWith("#") && (words.length == 1 || words[1].equals(ARCHITECTURE))) {
                unwanted.add(FileSystems.getDefault().getPathMatcher("glob:" + words[0]));
            }
        }
        long before = 0;
        long after = 0;
        for (int i = 1; i < arguments.length; i++) {
            Path jar = Path.of(arguments[i]);
            before += Files.size(jar);
            slim(jar, unwanted);
            after += Files.size(jar);
        }
        System.out.printf("slim: %d jars, %d -> %d MB%n", arguments.length - 1, before / 1_000_000, after / 1_000_000);
    }

    private static void slim(Path jar, List<PathMatcher> unwanted) throws IOException {
        Path fresh = jar.resolveSibling(jar.getFileName() + ".new");
        try (ZipFile source = new ZipFile(jar.toFile())) {
            if (source.stream().anyMatch(entry -> entry.getName().matches("META-INF/[^/]+\\.(SF|DSA|RSA|EC)"))) {
                return;
            }
            try (ZipOutputStream target = new ZipOutputStream(Files.newOutputStream(fresh))) {
                target.setLevel(Deflater.BEST_COMPRESSION);
                Set<String> seen = new HashSet<>();
                for (ZipEntry entry : source.stream().toList()) {
                    Path name = Path.of(jar.getFileName() + "/" + entry.getName());
                    boolean isWanted = unwanted.stream().noneMatch(matcher -> matcher.matches(name));
                    if (!isWanted || !seen.add(entry.getName())) {
                        continue; // some jars have an entry twice; Java takes the first
                    }
                    ZipEntry copy = new ZipEntry(entry.getName());
                    copy.setTime(entry.getTime());
                    target.putNextEntry(copy);
                    byte[] body = source.getInputStream(entry).readAllBytes();
                    if (entry.getName().endsWith(".class")) {
                        body = withoutVariables(body);
                    } else if (entry.getName().matches("META-INF/services/[^/]+")) {
                        body = withoutProviders(body, jar.getFileName().toString(), unwanted);
                    }
                    target.write(body);
                    target.closeEntry();
                }
            }
        }
        Files.move(fresh, jar, StandardCopyOption.REPLACE_EXISTING);
    }

    /** Removes deleted providers from the lists of a service's providers. */
    private static byte[] withoutProviders(byte[] body, String jar, List<PathMatcher> unwanted) {
        return new String(body, UTF_8)
                .lines()
                .filter(line -> {
                    Path name = Path.of(jar + "/" + line.replaceAll("#.*", "").strip().replace('.', '/') + ".class");
                    return unwanted.stream().noneMatch(matcher -> matcher.matches(name));
                })
                .collect(Collectors.joining("\n", "", "\n"))
                .getBytes(UTF_8);
    }

    private static byte[] withoutVariables(byte[] body) {
        try {
            ClassReader reader = new ClassReader(body);
            ClassWriter writer = new ClassWriter(0);
            reader.accept(new ClassVisitor(API, writer) {
                @Override
                public MethodVisitor visitMethod(int access, String name, String type, String generic, String[] errors) {
                    if (name.equals("<init>")) {
                        return super.visitMethod(access, name, type, generic, errors);
                    }
                    return new MethodVisitor(API, super.visitMethod(access, name, type, generic, errors)) {
                        @Override
                        public void visitLocalVariable(String n, String t, String s, Label from, Label to, int index) {}
                    };
                }
            }, 0);
            return writer.toByteArray();
        } catch (IllegalArgumentException | UnsupportedOperationException error) {
            return body; // a class file that this Java does not know: as it was
        }
    }
}
