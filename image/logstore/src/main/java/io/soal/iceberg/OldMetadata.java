package io.soal.iceberg;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadata.MetadataLogEntry;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.FileIO;

/**
 * The metadata files that a commit deletes ({@code write.metadata.delete-after-commit.enabled}).
 *
 * <p>Iceberg deletes whatever the table's {@code metadata-log} names. Whoever may write the metadata could name any file
 * that the role may delete, so only a metadata file beside the current one is deleted; others stay.
 */
public final class OldMetadata {
  private static final Pattern METADATA = Pattern.compile("[\\w.-]+\\.metadata\\.json(\\.gz)?");

  private OldMetadata() {}

  /** Replaces {@link CatalogUtil#deleteRemovedMetadataFiles}. */
  public static void delete(FileIO files, TableMetadata base, TableMetadata changed) {
    CatalogUtil.deleteFiles(files, removed(base, changed).get(true), "metadata");
  }

  /** Returns a file that the commit would delete without being an old metadata file of the table; null if none. */
  static String foreign(TableMetadata base, TableMetadata changed) {
    return removed(base, changed).get(false).stream().findAny().orElse(null);
  }

  private static Map<Boolean, List<String>> removed(TableMetadata base, TableMetadata changed) {
    Set<MetadataLogEntry> removed = new HashSet<>();
    if (base != null && changed.propertyAsBoolean(
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED,
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED_DEFAULT)) {
      removed.addAll(base.previousFiles());
      removed.removeAll(changed.previousFiles());
    }
    return removed.stream()
        .map(MetadataLogEntry::file)
        .distinct()
        .collect(Collectors.partitioningBy(file -> isBeside(file, base.metadataFileLocation())));
  }

  private static boolean isBeside(String file, String current) {
    return current != null
        && folder(file).equals(folder(current))
        && METADATA.matcher(file.substring(file.lastIndexOf('/') + 1)).matches();
  }

  private static String folder(String file) {
    return file.substring(0, file.lastIndexOf('/') + 1).replaceFirst("^s3[an]?://", "s3://");
  }
}
