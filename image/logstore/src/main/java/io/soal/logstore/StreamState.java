package io.soal.logstore;

import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;

/**
 * The state of a stream whose batch is in the table already.
 *
 * <p>A stream's state is a side effect of the batch's computation: the tasks that read the batch write it. A block that is
 * skipped does not read it. Spark refuses a batch that ends without its state, each time that the stream is started.
 */
public final class StreamState {
  private StreamState() {}

  /**
   * Computes the batch that the stream works on, if it has state.
   *
   * @return whether it has
   */
  public static boolean keep(StreamExecution stream) {
    QueryExecution batch = stream.getLatestExecutionContext().executionPlan();
    if (batch.executedPlan().find(node -> node instanceof StateStoreWriter).isEmpty()) {
      return false;
    }
    batch.toRdd().count();
    return true;
  }
}
