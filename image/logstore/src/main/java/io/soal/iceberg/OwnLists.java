package io.soal.iceberg;

import io.soal.logstore.Bounded;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;

/**
 * A table's FileIO that caches the manifest lists that this driver writes.
 *
 * <p>Iceberg reads back the list of a snapshot that it has just written, to find the manifests that it can delete: at
 * each statement, and again after the commit, with three requests each time. A list never changes.
 */
final class OwnLists implements FileIO {
  private static final long serialVersionUID = 1L;
  private static final Pattern LIST = Pattern.compile(".*/snap-[^/]+\\.avro");
  private static final int KEPT_MAX = 4;

  private final FileIO files;
  private final transient Map<String, byte[]> written = Bounded.map(KEPT_MAX);

  OwnLists(FileIO files) {
    this.files = files;
  }

  @Override
  public InputFile newInputFile(String path) {
    byte[] body = written.get(path);
    return body == null ? files.newInputFile(path) : new InMemoryInputFile(path, body);
  }

  @Override
  public InputFile newInputFile(String path, long length) {
    return files.newInputFile(path, length);
  }

  @Override
  public OutputFile newOutputFile(String path) {
    OutputFile file = files.newOutputFile(path);
    return LIST.matcher(path).matches() ? new Kept(file) : file;
  }

  @Override
  public void deleteFile(String path) {
    files.deleteFile(path);
  }

  @Override
  public Map<String, String> properties() {
    return files.properties();
  }

  /** A manifest list that is cached once S3 has accepted it. */
  private final class Kept implements OutputFile {
    private final OutputFile file;

    Kept(OutputFile file) {
      this.file = file;
    }

    @Override
    public PositionOutputStream create() {
      return new Copy(file.create(), location());
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return new Copy(file.createOrOverwrite(), location());
    }

    @Override
    public String location() {
      return file.location();
    }

    @Override
    public InputFile toInputFile() {
      return newInputFile(location());
    }
  }

  private final class Copy extends PositionOutputStream {
    private final PositionOutputStream out;
    private final String path;
    private final ByteArrayOutputStream body = new ByteArrayOutputStream();

    Copy(PositionOutputStream out, String path) {
      this.out = out;
      this.path = path;
    }

    @Override
    public void write(int octet) throws IOException {
      out.write(octet);
      body.write(octet);
    }

    @Override
    public void write(byte[] octets, int from, int length) throws IOException {
      out.write(octets, from, length);
      body.write(octets, from, length);
    }

    @Override
    public long getPos() throws IOException {
      return out.getPos();
    }

    @Override
    public long storedLength() throws IOException {
      return out.storedLength();
    }

    @Override
    public void flush() throws IOException {
      out.flush();
    }

    @Override
    public void close() throws IOException {
      out.close(); // throws if S3 has not accepted it
      written.put(path, body.toByteArray());
    }
  }
}
