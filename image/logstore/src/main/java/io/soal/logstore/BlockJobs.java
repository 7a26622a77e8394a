package io.soal.logstore;

import java.util.NoSuchElementException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkJobInfo;
import org.apache.spark.SparkStatusTracker;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.status.AppStatusStore;
import org.apache.spark.status.api.v1.StageData;
import org.apache.spark.status.api.v1.StageStatus;
import scala.Option;

/** The Spark jobs of a block. */
public final class BlockJobs {
  /** How long {@link #allTasksSucceeded} waits for Spark's records, in ms: as long as one listing of a table's files. */
  private static final long RECORDS_WAIT_MS = 50;

  private BlockJobs() {}

  /**
   * Whether the group had jobs, and each of their tasks ended well, at the first attempt. A killed task, such as the loser
   * of a speculation, leaves a file as a failed one does. False if the context is stopped, or Spark dropped the records or
   * has not made them yet.
   */
  public static boolean allTasksSucceeded(SparkSession session, String group) {
    SparkContext context = session.sparkContext();
    if (context.isStopped()) {
      return false;
    }
    try {
      // Spark records what has ended in a thread of its own: before that, a job with a failed task is not to be seen.
      context.listenerBus().waitUntilEmpty(RECORDS_WAIT_MS);
    } catch (TimeoutException records) {
      return false;
    }
    SparkStatusTracker tracker = context.statusTracker();
    int[] jobs = tracker.getJobIdsForGroup(group);
    for (int job : jobs) {
      Option<SparkJobInfo> info = tracker.getJobInfo(job);
      if (info.isEmpty() || !info.get().status().name().equals("SUCCEEDED")) {
        return false;
      }
      for (int stage : info.get().stageIds()) {
        if (!allTasksSucceeded(context.statusStore(), stage)) {
          return false;
        }
      }
    }
    return jobs.length > 0;
  }

  private static boolean allTasksSucceeded(AppStatusStore records, int stage) {
    StageData last;
    try {
      last = records.lastStageAttempt(stage);
    } catch (NoSuchElementException dropped) {
      return false;
    }
    if (last.status() == StageStatus.SKIPPED) {
      return true; // another job has run it
    }
    return last.attemptId() == 0 // of an earlier attempt nothing is known
        && last.numCompleteTasks() == last.numTasks()
        && last.numActiveTasks() + last.numFailedTasks() + last.numKilledTasks() == 0;
  }
}
