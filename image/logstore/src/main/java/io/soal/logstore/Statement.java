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
 * The origin of a commit: the thread, the session, and Spark's own numbers of the executions that it is part of.
 *
 * <p>A script can set none of them: Spark overwrites the numbers at the start of each execution.
 */
public final class Statement {
  private final Thread thread;
  private final Object session;
  private final Set<Long> executions;

  /** @param executions the innermost first; empty: Spark numbers none, as for a call into Delta's own classes */
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

  /** The number of the execution that this thread carries out; null: Spark numbers none. */
  public static Long number() {
    return current().executions.stream().findFirst().orElse(null);
  }

  /** The executions that run in this JVM now. */
  public static Set<Long> running() {
    Set<Long> found = new HashSet<>();
    SQLExecution$.MODULE$.executionIdToQueryExecution().keySet().forEach(number -> found.add((Long) number));
    return found;
  }

  /** Whether an execution of a session, or of one that was cloned from it in a block, runs in this JVM now, besides some. */
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

  /** Whether it ran already when these did. One that has no number is never known to have. */
  boolean isAmong(Set<Long> numbers) {
    return !executions.isEmpty() && numbers.contains(executions.iterator().next());
  }

  /** The block of the first of these executions that it is, or is part of; null: it is none of them. */
  Block blockIn(Map<Long, Block> blocks) {
    return executions.stream().map(blocks::get).filter(Objects::nonNull).findFirst().orElse(null);
  }
}
