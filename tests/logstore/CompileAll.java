import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.StandardLocation;
import javax.tools.ToolProvider;

/** Compiles each folder of Java sources into its subfolder {@code classes}, in one JVM to save start-up time. */
public final class CompileAll {
  public static void main(String[] arguments) throws Exception {
    JavaCompiler javac = ToolProvider.getSystemJavaCompiler();
    StandardJavaFileManager files = javac.getStandardFileManager(null, null, null);
    files.setLocation(
        StandardLocation.CLASS_PATH,
        Stream.of(arguments[0].split(":")).map(jar -> Path.of(jar).toFile()).collect(Collectors.toList()));
    for (int place = 1; place < arguments.length; place++) {
      Path classes = Files.createDirectories(Path.of(arguments[place], "classes"));
      files.setLocation(StandardLocation.CLASS_OUTPUT, List.of(classes.toFile()));
      List<Path> sources;
      try (Stream<Path> all = Files.walk(Path.of(arguments[place]))) {
        sources = all.filter(path -> path.toString().endsWith(".java")).collect(Collectors.toList());
      }
      javac.getTask(
          null, files, null, List.of("-proc:none", "-nowarn"), null, files.getJavaFileObjectsFromPaths(sources)).call();
    }
  }
}
