package io.soal.iceberg;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadata.MetadataLogEntry;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.io.FileIO;

/**
 * The metadata files that a commit deletes ({@code write.metadata.delete-after-commit.enabled}).
 *
 * <p>Iceberg deletes whatever the table's {@code metadata-log} names. Whoever may write the metadata could name any file
 * that the role may delete, so only a metadata file beside the current one, and of an earlier version, is deleted;
 * others stay.
 */
public final class OldMetadata {
  /** Some catalogs name a file by its time, in milliseconds. */
  private static final Pattern METADATA =
      Pattern.compile("v?(?<version>\\d{1,18})(-[\\w-]+)?(\\.gz)?\\.metadata\\.json(\\.gz)?");

  private OldMetadata() {}

  /** Replaces {@link CatalogUtil#deleteRemovedMetadataFiles}. */
  public static void delete(FileIO files, TableMetadata base, TableMetadata changed) {
    List<String> old =
        removed(base, changed).filter(file -> isOld(file, base.metadataFileLocation())).collect(Collectors.toList());
    CatalogUtil.deleteFiles(files, old, "metadata");
  }

  /** Returns a file that the commit would delete although it is not named like a metadata file; null if none. */
  static String foreign(TableMetadata base, TableMetadata changed) {
    return removed(base, changed).filter(file -> version(file) < 0).findAny().orElse(null);
  }

  private static Stream<String> removed(TableMetadata base, TableMetadata changed) {
    Set<MetadataLogEntry> removed = new HashSet<>();
    if (base != null && changed.propertyAsBoolean(
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED,
        TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED_DEFAULT)) {
      removed.addAll(base.previousFiles());
      removed.removeAll(changed.previousFiles());
    }
    return removed.stream().map(MetadataLogEntry::file).distinct();
  }

  /** A catalog of paths has predictable names: a forged entry could name the file that the commit itself writes. */
  private static boolean isOld(String file, String current) {
    return current != null
        && folder(file).equals(folder(current))
        && version(file) >= 0
        && version(file) < version(current);
  }

  /** Returns the version in the name of a metadata file; -1 for any other name. */
  private static long version(String file) {
    Matcher name = METADATA.matcher(file.substring(file.lastIndexOf('/') + 1));
    return name.matches() ? Long.parseLong(name.group("version")) : -1;
  }

  private static String folder(String file) {
    return file.substring(0, file.lastIndexOf('/') + 1).replaceFirst("^s3[an]?://", "s3://");
  }
}
