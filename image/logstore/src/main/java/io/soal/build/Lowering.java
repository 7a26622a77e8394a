package io.soal.build;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.ClassVisitor;
import org.apache.xbean.asm9.ClassWriter;
import org.apache.xbean.asm9.Handle;
import org.apache.xbean.asm9.MethodVisitor;
import org.apache.xbean.asm9.Opcodes;

/** Rewrites a class so that each of its serialisable lambda expressions becomes a class of its own. */
final class Lowering extends ClassVisitor {
  static final int API = Opcodes.ASM9;

  private final Map<String, byte[]> classes = new TreeMap<>();
  private final Set<String> open;
  private String host;
  private int version;

  private Lowering(ClassVisitor next, Set<String> open) {
    super(API, next);
    this.open = open;
  }

  static Lowering of(byte[] body) {
    ClassReader reader = new ClassReader(body);
    ClassWriter writer = new ClassWriter(0);
    Lowering lowering = new Lowering(writer, methodsForOthers(reader));
    reader.accept(lowering, 0);
    if (!lowering.classes.isEmpty()) {
      lowering.classes.put(lowering.host, writer.toByteArray());
    }
    return lowering;
  }

  /** Returns the rewritten class and its lambda classes by name; empty if it has no such lambda. */
  Map<String, byte[]> classes() {
    return classes;
  }

  /** Returns the methods (name and type) that are not private, so that a lambda class may call them. */
  private static Set<String> methodsForOthers(ClassReader reader) {
    Set<String> found = new HashSet<>();
    reader.accept(new ClassVisitor(API) {
      @Override
      public MethodVisitor visitMethod(int access, String name, String type, String generic, String[] errors) {
        if ((access & Opcodes.ACC_PRIVATE) == 0) {
          found.add(name + type);
        }
        return null;
      }
    }, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG);
    return found;
  }

  @Override
  public void visit(int version, int access, String name, String generic, String parent, String[] interfaces) {
    this.host = name;
    this.version = version;
    super.visit(version, access, name, generic, parent, interfaces);
  }

  @Override
  public MethodVisitor visitMethod(int access, String name, String type, String generic, String[] errors) {
    return new MethodVisitor(API, super.visitMethod(access, name, type, generic, errors)) {
      @Override
      public void visitInvokeDynamicInsn(String name, String type, Handle factory, Object... arguments) {
        LambdaSite site = LambdaSite.of(host, name, type, factory, arguments);
        if (site == null || !open.contains(site.target.getName() + site.target.getDesc())) {
          super.visitInvokeDynamicInsn(name, type, factory, arguments);
          return;
        }
        // The JVM's own naming, apart from the number.
        String own = host + "$$Lambda$L" + classes.size();
        classes.put(own, site.asClass(own, version));
        if (site.captured.length == 0) {
          super.visitFieldInsn(Opcodes.GETSTATIC, own, LambdaSite.ONLY, site.made.getDescriptor());
        } else {
          super.visitMethodInsn(Opcodes.INVOKESTATIC, own, LambdaSite.MAKE, type, false);
        }
      }
    };
  }
}
