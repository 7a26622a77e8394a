package io.soal.build;

import java.lang.invoke.LambdaMetafactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.Handle;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.Type;

/** A call site of {@link LambdaMetafactory}: the expression in a class that creates a lambda object. */
final class LambdaSite {
  /** The static field with the single instance of a lambda that captures nothing. */
  static final String ONLY = "only";
  /** The static factory method of a lambda that captures values. */
  static final String MAKE = "make";

  private static final String FACTORY = "java/lang/invoke/LambdaMetafactory";
  private static final String SERIALIZED = "java/lang/invoke/SerializedLambda";
  private static final String OBJECT = "java/lang/Object";

  final Handle target;
  final Type[] captured;
  final Type made;
  private final String host;
  private final String method;
  private final Type erased;
  private final Type instantiated;
  private final List<Type> markers = new ArrayList<>();
  private final List<Type> bridges = new ArrayList<>();

  private LambdaSite(String host, String method, String type, Object[] arguments) {
    this.host = host;
    this.method = method;
    this.captured = Type.getArgumentTypes(type);
    this.made = Type.getReturnType(type);
    this.erased = (Type) arguments[0];
    this.target = (Handle) arguments[1];
    this.instantiated = (Type) arguments[2];
    int flags = (Integer) arguments[3];
    int next = 4;
    if ((flags & LambdaMetafactory.FLAG_MARKERS) != 0) {
      next = take(arguments, next, markers);
    }
    if ((flags & LambdaMetafactory.FLAG_BRIDGES) != 0) {
      take(arguments, next, bridges);
    }
  }

  private static int take(Object[] arguments, int at, List<Type> into) {
    int count = (Integer) arguments[at];
    for (Object one : Arrays.copyOfRange(arguments, at + 1, at + 1 + count)) {
      into.add((Type) one);
    }
    return at + 1 + count;
  }

  /** Returns the site; null for any other call, and for lambdas of a shape that Scala does not emit. */
  static LambdaSite of(String host, String name, String type, Handle factory, Object[] arguments) {
    boolean isAlternative = factory.getOwner().equals(FACTORY) && factory.getName().equals("altMetafactory");
    if (!isAlternative || ((Integer) arguments[3] & LambdaMetafactory.FLAG_SERIALIZABLE) == 0) {
      return null; // the JVM archives the others itself
    }
    LambdaSite site = new LambdaSite(host, name, type, arguments);
    return site.isPlain() ? site : null;
  }

  /** Whether the lambda calls a static method of its own class without boxing; {@link #asClass} supports no other. */
  private boolean isPlain() {
    if (target.getTag() != Opcodes.H_INVOKESTATIC || !target.getOwner().equals(host)) {
      return false;
    }
    List<Type> signatures = new ArrayList<>(bridges);
    signatures.add(erased);
    Type[] wanted = Type.getArgumentTypes(target.getDesc());
    Type[] narrow = instantiated.getArgumentTypes();
    if (wanted.length != captured.length + narrow.length) {
      return false;
    }
    for (Type signature : signatures) {
      Type[] given = signature.getArgumentTypes();
      for (int i = 0; i < given.length; i++) {
        if (!passes(given[i], narrow[i]) || !passes(narrow[i], wanted[captured.length + i])) {
          return false;
        }
      }
      if (!passes(Type.getReturnType(target.getDesc()), signature.getReturnType())) {
        return false;
      }
    }
    return true;
  }

  private static boolean passes(Type given, Type wanted) {
    return given.equals(wanted) || isReference(given) && isReference(wanted);
  }

  private static boolean isReference(Type type) {
    return type.getSort() == Type.OBJECT || type.getSort() == Type.ARRAY;
  }

  /** Returns the class file that the JVM would generate for this lambda, under the given name. */
  byte[] asClass(String name, int version) {
    ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
    List<String> interfaces = new ArrayList<>(List.of(made.getInternalName()));
    for (Type marker : markers) {
      if (!interfaces.contains(marker.getInternalName())) {
        interfaces.add(marker.getInternalName());
      }
    }
    if (!interfaces.contains("java/io/Serializable")) {
      interfaces.add("java/io/Serializable");
    }
    int access = Opcodes.ACC_FINAL | Opcodes.ACC_SUPER | Opcodes.ACC_SYNTHETIC;
    writer.visit(version, access, name, null, OBJECT, interfaces.toArray(new String[0]));
    for (int i = 0; i < captured.length; i++) {
      writer.visitField(Opcodes.ACC_PRIVATE | Opcodes.ACC_FINAL, field(i), captured[i].getDescriptor(), null, null);
    }
    constructor(writer, name);
    if (captured.length == 0) {
      only(writer, name);
    } else {
      make(writer, name);
    }
    calls(writer, name, erased, Opcodes.ACC_PUBLIC);
    for (Type bridge : bridges) {
      if (!bridge.equals(erased)) {
        calls(writer, name, bridge, Opcodes.ACC_PUBLIC | Opcodes.ACC_BRIDGE);
      }
    }
    writeReplace(writer, name);
    writer.visitEnd();
    return writer.toByteArray();
  }

  private static String field(int number) {
    return "arg$" + (number + 1);
  }

  private void constructor(ClassWriter writer, String name) {
    MethodVisitor code = writer.visitMethod(Opcodes.ACC_PRIVATE, "<init>", taking(), null, null);
    code.visitCode();
    code.visitVarInsn(Opcodes.ALOAD, 0);
    code.visitMethodInsn(Opcodes.INVOKESPECIAL, OBJECT, "<init>", "()V", false);
    int at = 1;
    for (int i = 0; i < captured.length; i++) {
      code.visitVarInsn(Opcodes.ALOAD, 0);
      code.visitVarInsn(captured[i].getOpcode(Opcodes.ILOAD), at);
      code.visitFieldInsn(Opcodes.PUTFIELD, name, field(i), captured[i].getDescriptor());
      at += captured[i].getSize();
    }
    finish(code, Opcodes.RETURN);
  }

  private String taking() {
    return Type.getMethodDescriptor(Type.VOID_TYPE, captured);
  }

  private void only(ClassWriter writer, String name) {
    int access = Opcodes.ACC_STATIC | Opcodes.ACC_FINAL;
    writer.visitField(access, ONLY, made.getDescriptor(), null, null);
    MethodVisitor code = writer.visitMethod(Opcodes.ACC_STATIC, "<clinit>", "()V", null, null);
    code.visitCode();
    code.visitTypeInsn(Opcodes.NEW, name);
    code.visitInsn(Opcodes.DUP);
    code.visitMethodInsn(Opcodes.INVOKESPECIAL, name, "<init>", "()V", false);
    code.visitFieldInsn(Opcodes.PUTSTATIC, name, ONLY, made.getDescriptor());
    finish(code, Opcodes.RETURN);
  }

  private void make(ClassWriter writer, String name) {
    MethodVisitor code =
        writer.visitMethod(Opcodes.ACC_STATIC, MAKE, Type.getMethodDescriptor(made, captured), null, null);
    code.visitCode();
    code.visitTypeInsn(Opcodes.NEW, name);
    code.visitInsn(Opcodes.DUP);
    int at = 0;
    for (Type one : captured) {
      code.visitVarInsn(one.getOpcode(Opcodes.ILOAD), at);
      at += one.getSize();
    }
    code.visitMethodInsn(Opcodes.INVOKESPECIAL, name, "<init>", taking(), false);
    finish(code, Opcodes.ARETURN);
  }

  private void calls(ClassWriter writer, String name, Type signature, int access) {
    MethodVisitor code = writer.visitMethod(access, method, signature.getDescriptor(), null, null);
    code.visitCode();
    for (int i = 0; i < captured.length; i++) {
      load(code, name, i);
    }
    Type[] given = signature.getArgumentTypes();
    Type[] narrow = instantiated.getArgumentTypes();
    Type[] wanted = Type.getArgumentTypes(target.getDesc());
    int at = 1;
    for (int i = 0; i < given.length; i++) {
      code.visitVarInsn(given[i].getOpcode(Opcodes.ILOAD), at);
      cast(code, given[i], narrow[i]);
      cast(code, narrow[i], wanted[captured.length + i]);
      at += given[i].getSize();
    }
    code.visitMethodInsn(Opcodes.INVOKESTATIC, host, target.getName(), target.getDesc(), target.isInterface());
    cast(code, Type.getReturnType(target.getDesc()), signature.getReturnType());
    finish(code, signature.getReturnType().getOpcode(Opcodes.IRETURN));
  }

  private void load(MethodVisitor code, String name, int number) {
    code.visitVarInsn(Opcodes.ALOAD, 0);
    code.visitFieldInsn(Opcodes.GETFIELD, name, field(number), captured[number].getDescriptor());
  }

  private static void cast(MethodVisitor code, Type given, Type wanted) {
    if (!given.equals(wanted) && !wanted.getInternalName().equals(OBJECT)) {
      code.visitTypeInsn(Opcodes.CHECKCAST, wanted.getInternalName());
    }
  }

  /** Serialises to the same {@link java.lang.invoke.SerializedLambda} as the JVM's own lambda class. */
  private void writeReplace(ClassWriter writer, String name) {
    int access = Opcodes.ACC_PRIVATE | Opcodes.ACC_FINAL;
    MethodVisitor code = writer.visitMethod(access, "writeReplace", "()Ljava/lang/Object;", null, null);
    code.visitCode();
    code.visitTypeInsn(Opcodes.NEW, SERIALIZED);
    code.visitInsn(Opcodes.DUP);
    code.visitLdcInsn(Type.getObjectType(host));
    code.visitLdcInsn(made.getInternalName());
    code.visitLdcInsn(method);
    code.visitLdcInsn(erased.getDescriptor());
    code.visitIntInsn(Opcodes.BIPUSH, target.getTag());
    code.visitLdcInsn(target.getOwner());
    code.visitLdcInsn(target.getName());
    code.visitLdcInsn(target.getDesc());
    code.visitLdcInsn(instantiated.getDescriptor());
    code.visitIntInsn(Opcodes.SIPUSH, captured.length);
    code.visitTypeInsn(Opcodes.ANEWARRAY, OBJECT);
    for (int i = 0; i < captured.length; i++) {
      code.visitInsn(Opcodes.DUP);
      code.visitIntInsn(Opcodes.SIPUSH, i);
      load(code, name, i);
      box(code, captured[i]);
      code.visitInsn(Opcodes.AASTORE);
    }
    String parts = "(Ljava/lang/Class;" + "Ljava/lang/String;".repeat(3) + "I" + "Ljava/lang/String;".repeat(4)
        + "[Ljava/lang/Object;)V";
    code.visitMethodInsn(Opcodes.INVOKESPECIAL, SERIALIZED, "<init>", parts, false);
    finish(code, Opcodes.ARETURN);
  }

  private static void box(MethodVisitor code, Type type) {
    String name = switch (type.getSort()) {
      case Type.BOOLEAN -> "java/lang/Boolean";
      case Type.BYTE -> "java/lang/Byte";
      case Type.CHAR -> "java/lang/Character";
      case Type.SHORT -> "java/lang/Short";
      case Type.INT -> "java/lang/Integer";
      case Type.LONG -> "java/lang/Long";
      case Type.FLOAT -> "java/lang/Float";
      case Type.DOUBLE -> "java/lang/Double";
      default -> null;
    };
    if (name != null) {
      String boxes = "(" + type.getDescriptor() + ")L" + name + ";";
      code.visitMethodInsn(Opcodes.INVOKESTATIC, name, "valueOf", boxes, false);
    }
  }

  private static void finish(MethodVisitor code, int end) {
    code.visitInsn(end);
    code.visitMaxs(0, 0);
    code.visitEnd();
  }
}
