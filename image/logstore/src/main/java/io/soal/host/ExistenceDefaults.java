package io.soal.host;

import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateArray;
import org.apache.spark.sql.catalyst.expressions.CreateMap;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns;
import org.apache.spark.sql.types.StructField;
import scala.collection.Iterator;

/**
 * Checks the values that older rows have in newer columns ({@code EXISTS_DEFAULT}), before Spark evaluates them.
 *
 * <p>They are SQL in a column's metadata, which the schema in a Parquet file brings. Spark itself writes literals, and
 * {@code PARSE_JSON} for VARIANT, which its vectorised reader cannot read either.
 */
public final class ExistenceDefaults {
  private static final Set<Class<?>> OF_LITERALS =
      Set.of(Literal.class, Cast.class, CreateArray.class, CreateMap.class, CreateNamedStruct.class);

  private ExistenceDefaults() {}

  /** @throws UnsupportedOperationException if the column's value is not made of literals */
  public static void check(StructField column) {
    String sql = column.metadata().getString(ResolveDefaultColumns.EXISTS_DEFAULT_COLUMN_METADATA_KEY());
    boolean isLiteral;
    try {
      isLiteral = isOfLiterals(Literal.fromSQL(sql));
    } catch (Exception | AssertionError unknown) { // Scala declares no exceptions
      isLiteral = false;
    }
    if (!isLiteral) {
      throw new UnsupportedOperationException("the schema of a file or table gives the column " + column.name()
          + " a value for older rows (EXISTS_DEFAULT) that is no literal; it is not evaluated, since others may have"
          + " written it. Write the file or table again without it");
    }
  }

  private static boolean isOfLiterals(Expression value) {
    if (!OF_LITERALS.contains(value.getClass())) {
      return false;
    }
    for (Iterator<Expression> part = value.children().iterator(); part.hasNext(); ) {
      if (!isOfLiterals(part.next())) {
        return false;
      }
    }
    return true;
  }
}
