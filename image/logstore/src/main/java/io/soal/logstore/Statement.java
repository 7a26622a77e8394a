package io.soal.logstore;

import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SQLExecution$;
import scala.Option;

/**
 * The origin of a commit: the thread, the session, and Spark's ids of the executions that it is part of.
 *
 * <p>A script cannot forge them: Spark overwrites the ids at the start of each execution.
 */
public final class Statement {
  private final Thread thread;
  private final Object session;
  private final Set<Long> executions;

  /** @param executions ids, innermost first; empty if Spark gave none, as for a direct call of Delta's classes */
  Statement(Thread thread, Object session, Set<Long> executions) {
    this.thread = thread;
    this.session = session;
    this.executions = executions;
  }

  static Statement current() {
    Option<SparkSession> active = SparkSession.getActiveSession();
    if (active.isEmpty()) {
      return new Statement(Thread.currentThread(), null, Set.of());
    }
    Set<Long> executions = new LinkedHashSet<>();
    SQLExecution$ names = SQLExecution$.MODULE$;
    for (String name : new String[] {names.EXECUTION_ID_KEY(), names.EXECUTION_ROOT_ID_KEY()}) {
      String number = active.get().sparkContext().getLocalProperty(name);
      if (number != null) {
        executions.add(Long.parseLong(number));
      }
    }
    return new Statement(Thread.currentThread(), active.get(), executions);
  }

  /** Returns the id of the execution on this thread; null if there is none. */
  public static Long number() {
    return current().executions.stream().findFirst().orElse(null);
  }

  /** Returns the ids of the executions that run in this JVM now. */
  public static Set<Long> running() {
    Set<Long> found = new HashSet<>();
    SQLExecution$.MODULE$.executionIdToQueryExecution().keySet().forEach(number -> found.add((Long) number));
    return found;
  }

  /** Whether an execution other than {@code besides} runs now, of the session or of one cloned from it in the block. */
  static boolean runsOn(Object session, String filePrefix, Set<Long> besides) {
    return SQLExecution$.MODULE$.executionIdToQueryExecution().entrySet().stream()
        .filter(one -> !besides.contains(one.getKey()))
        .map(one -> one.getValue().sparkSession())
        .anyMatch(one -> one == session || BlockSettings.filePrefix(one).equals(filePrefix));
  }

  boolean isOn(Thread other) {
    return thread == other;
  }

  boolean isOf(Object other) {
    return session != null && session == other;
  }

  /** Whether the innermost execution is one of these; false if there is none. */
  boolean isAmong(Set<Long> numbers) {
    return !executions.isEmpty() && numbers.contains(executions.iterator().next());
  }

  /** Returns the block of the innermost of these executions that has one; null if none has. */
  Block blockIn(Map<Long, Block> blocks) {
    return executions.stream().map(blocks::get).filter(Objects::nonNull).findFirst().orElse(null);
  }
}
