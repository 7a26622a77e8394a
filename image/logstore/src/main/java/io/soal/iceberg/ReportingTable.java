package io.soal.iceberg;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.constraints.Constraint;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A block's table in Spark. It reports to the block when a statement begins to write, and how it ends.
 *
 * <p>Iceberg makes no snapshot for two statements that change nothing: a dynamic overwrite with no row, and a DELETE
 * whose condition is never true. This report is the block's only witness of them. An Iceberg transaction takes one
 * change at a time, so this class also serialises statements of several threads. It delegates everything else.
 */
final class ReportingTable extends SparkTable {
  /** The interfaces by which Spark gets from a table to a batch. */
  private static final List<Class<?>> LEADING =
      List.of(RowLevelOperation.class, WriteBuilder.class, Write.class, BatchWrite.class);

  private final SparkTable shown;
  private final StagedTable staged;

  ReportingTable(SparkTable shown, StagedTable staged) {
    super(staged);
    this.shown = shown;
    this.staged = staged;
  }

  @Override
  public void deleteWhere(Predicate[] conditions) {
    synchronized (staged) {
      shown.deleteWhere(conditions);
      staged.report();
    }
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return (WriteBuilder) followed(shown.newWriteBuilder(info));
  }

  /** Returns a proxy of {@code made} and of all that it leads to; it reports a batch's begin, commit and abort. */
  private Object followed(Object made) {
    Set<Class<?>> kinds = new LinkedHashSet<>();
    for (Class<?> kind = made.getClass(); kind != null; kind = kind.getSuperclass()) {
      kinds.addAll(Set.of(kind.getInterfaces()));
    }
    InvocationHandler handler = (proxy, method, arguments) -> {
      synchronized (staged) {
        Object result;
        boolean committed = false;
        try {
          method.setAccessible(true);
          result = method.invoke(made, arguments);
          committed = method.getName().equals("commit");
        } catch (InvocationTargetException e) {
          throw e.getCause();
        } finally {
          if (made instanceof BatchWrite && (committed || method.getName().equals("abort"))) {
            staged.ended(made, committed); // Spark aborts a batch whose commit has failed
          }
        }
        if (result instanceof BatchWrite) {
          staged.began(result);
        }
        return LEADING.stream().anyMatch(kind -> kind.isInstance(result)) ? followed(result) : result;
      }
    };
    return Proxy.newProxyInstance(StagedTable.class.getClassLoader(), kinds.toArray(Class<?>[]::new), handler);
  }

  @Override
  public SparkTable copyWithBranch(String branch) {
    return new ReportingTable(shown.copyWithBranch(branch), staged);
  }

  @Override
  public Long snapshotId() {
    return shown.snapshotId();
  }

  @Override
  public String branch() {
    return shown.branch();
  }

  @Override
  public String id() {
    return shown.id();
  }

  @Override
  public String version() {
    return shown.version();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return shown.capabilities();
  }

  @Override
  public Constraint[] constraints() {
    return shown.constraints();
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return shown.newScanBuilder(options);
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return (RowLevelOperationBuilder) followed(shown.newRowLevelOperationBuilder(info));
  }

  @Override
  public boolean canDeleteWhere(Predicate[] conditions) {
    return shown.canDeleteWhere(conditions);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return shown.metadataColumns();
  }

  @Override
  public Map<String, String> properties() {
    return shown.properties();
  }

  @Override
  public Transform[] partitioning() {
    return shown.partitioning();
  }

  @Override
  public StructType schema() {
    return shown == null ? super.schema() : shown.schema();
  }

  @Override
  public String toString() {
    return shown.toString();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ReportingTable table && shown.equals(table.shown);
  }

  @Override
  public int hashCode() {
    return shown.hashCode();
  }
}
