package io.soal.logstore;

import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.streaming.operators.stateful.StateStoreWriter;
import org.apache.spark.sql.execution.streaming.runtime.StreamExecution;

/**
 * Writes the state of a stream whose batch is already in the table.
 *
 * <p>A stream's state is a side effect of computing the batch, which a skipped block does not do. Without the state
 * Spark refuses the batch on every start of the stream.
 */
public final class StreamState {
  private StreamState() {}

  /**
   * Computes the stream's current batch if its plan writes state.
   *
   * @return whether it does
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
