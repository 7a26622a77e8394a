package io.soal.build;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.invoke.SerializedLambda;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.zip.ZipFile;
import scala.Function1;
import scala.Function2;

/** {@code Lambda} uses lambdas of Scala's library and prints the kind of each; {@code Lambda JAR} verifies a jar. */
public final class Lambda {
  private static final String MADE = "$$Lambda$L";

  private Lambda() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length > 0) {
      verify(Path.of(arguments[0]));
      return;
    }
    Function1<String, String> first = (Function1<String, String> & Serializable) text -> text + "1";
    Function1<String, String> second = (Function1<String, String> & Serializable) text -> text + "2";
    Function2<String, String, String> both = (Function2<String, String, String> & Serializable) (a, b) -> a + b;
    tell("composed", first.compose(second), one -> one.apply("x"));
    tell("continued", first.andThen(second), one -> one.apply("x"));
    tell("curried", both.curried(), one -> one.apply("a").apply("b"));
    tell("half", both.curried().apply("a"), one -> one.apply("b"));
  }

  private interface Use<F> {
    Object of(F function);
  }

  private static <F> void tell(String what, F function, Use<F> use) throws Exception {
    Class<?> type = function.getClass();
    System.out.println("kind " + (type.isHidden() ? "made by Java" : type.getName().contains(MADE) ? "made" : "other"));
    System.out.println(what + " " + use.of(function) + " " + use.of(again(function)));
    System.out.println(type.isSynthetic() + " " + new TreeSet<>(
        Arrays.stream(type.getInterfaces()).map(Class::getName).collect(Collectors.toList())));
    Method replace = type.getDeclaredMethod("writeReplace");
    replace.setAccessible(true);
    SerializedLambda form = (SerializedLambda) replace.invoke(function);
    System.out.println(form + " " + form.getFunctionalInterfaceMethodSignature() + " " + form.getImplMethodSignature()
        + " " + form.getInstantiatedMethodType() + " " + form.getCapturedArgCount());
  }

  @SuppressWarnings("unchecked")
  private static <F> F again(F function) throws IOException, ClassNotFoundException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(function);
    }
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      return (F) in.readObject();
    }
  }

  /** Makes the JVM verify each lambda class of a jar; prints their number. */
  private static void verify(Path jar) throws IOException, ClassNotFoundException {
    int count = 0;
    try (ZipFile file = new ZipFile(jar.toFile())) {
      List<String> names = file.stream().map(one -> one.getName()).filter(one -> one.contains(MADE)).toList();
      for (String name : names) {
        Class.forName(name.replace(".class", "").replace('/', '.'), true, Lambda.class.getClassLoader());
        count++;
      }
    }
    System.out.println(count);
  }
}
