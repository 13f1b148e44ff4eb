package edgekit.core;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The safetensors format: read strictly, and written with the same bytes as edgekit's Python and JavaScript write.
 *
 * <p>Eight bytes that count the header's (little-endian), a JSON header, then the tensors without gaps.
 */
public final class TensorFile {
  private static final int MAX_HEADER_BYTES = 100_000_000;
  private static final int ALIGN = 8;

  private TensorFile() {}

  /** Reads the tensors, which share the memory of {@code file}. Throws IllegalArgumentException that says what is wrong. */
  public static Map<String, Tensor> read(ByteBuffer file) {
    ByteBuffer bytes = file.slice().order(ByteOrder.LITTLE_ENDIAN);
    if (bytes.remaining() < ALIGN) {
      throw new IllegalArgumentException("The tensor file is too short for a header.");
    }
    long size = bytes.getLong();
    if (size < 0 || size > MAX_HEADER_BYTES || size > bytes.remaining()) {
      throw new IllegalArgumentException("The tensor file's header is too large, or cut off.");
    }
    ByteBuffer text = bytes.slice();
    text.limit((int) size);
    bytes.position(ALIGN + (int) size);
    ByteBuffer data = bytes.slice();
    Map<String, Tensor> found = new LinkedHashMap<>();
    List<long[]> places = new ArrayList<>();
    for (Map.Entry<String, Object> entry : header(text).entrySet()) {
      if (!entry.getKey().equals("__metadata__")) {
        found.put(entry.getKey(), tensor(entry.getKey(), entry.getValue(), data, places));
      }
    }
    places.sort((a, b) -> Long.compare(a[0], b[0]) != 0 ? Long.compare(a[0], b[0]) : Long.compare(a[1], b[1]));
    long end = 0;
    for (long[] place : places) {
      if (place[0] != end) {
        throw new IllegalArgumentException("The tensors of the file overlap, or leave a gap.");
      }
      end = place[1];
    }
    if (end != data.remaining()) {
      throw new IllegalArgumentException("Bytes behind the tensors of the file are of none of them.");
    }
    return found;
  }

  private static Map<String, Object> header(ByteBuffer bytes) {
    Object header;
    try {
      CharBuffer text = StandardCharsets.UTF_8.newDecoder().decode(bytes);
      header = Json.read(text.toString());
    } catch (CharacterCodingException error) {
      throw new IllegalArgumentException("The tensor file's header is not UTF-8.");
    }
    return Fields.map(header, "The tensor file's header");
  }

  private static Tensor tensor(String key, Object described, ByteBuffer data, List<long[]> places) {
    Map<String, Object> entry = Fields.map(described, "The tensor '" + key + "'");
    if (entry.size() != 3) {
      throw new IllegalArgumentException("The tensor '" + key + "' is not described as the format demands.");
    }
    Dtype dtype = Dtype.ofStored(entry.get("dtype"));
    long[] shape = Fields.counts(entry.get("shape"), key);
    long[] place = Fields.counts(entry.get("data_offsets"), key);
    if (place.length != 2 || place[0] > place[1] || place[1] > data.remaining()) {
      throw new IllegalArgumentException("The tensor '" + key + "' has no place in the file.");
    }
    places.add(place);
    ByteBuffer part = data.duplicate();
    part.position((int) place[0]);
    part.limit((int) place[1]);
    return Tensor.of(dtype, shape, part);
  }

  /** Writes the tensors; the same ones give the same bytes, in whatever order they come. */
  public static byte[] write(Map<String, Tensor> tensors) {
    List<Map.Entry<String, Tensor>> entries = new ArrayList<>(tensors.entrySet());
    entries.sort(
        (a, b) -> {
          int wide = a.getValue().dtype.compareTo(b.getValue().dtype);
          return wide != 0 ? wide : byCodePoints(a.getKey(), b.getKey());
        });
    Map<String, Object> header = new LinkedHashMap<>();
    long end = 0;
    for (Map.Entry<String, Tensor> entry : entries) {
      Tensor tensor = entry.getValue();
      long start = end;
      end += tensor.data().remaining();
      Map<String, Object> described = new LinkedHashMap<>();
      described.put("dtype", tensor.dtype.stored);
      described.put("shape", tensor.shape);
      described.put("data_offsets", new long[] {start, end});
      header.put(entry.getKey(), described);
    }
    byte[] text = Json.write(header).getBytes(StandardCharsets.UTF_8);
    int headerBytes = (text.length + ALIGN - 1) / ALIGN * ALIGN;
    ByteBuffer file = ByteBuffer.allocate(Math.toIntExact(ALIGN + headerBytes + end)).order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(headerBytes).put(text);
    while (file.position() < ALIGN + headerBytes) {
      file.put((byte) ' ');
    }
    for (Map.Entry<String, Tensor> entry : entries) {
      file.put(entry.getValue().data());
    }
    return file.array();
  }

  // Java's own order is by halves of surrogate pairs, Python's by code points.
  private static int byCodePoints(String a, String b) {
    int[] first = a.codePoints().toArray();
    int[] second = b.codePoints().toArray();
    for (int index = 0; index < Math.min(first.length, second.length); index++) {
      if (first[index] != second[index]) {
        return Integer.compare(first[index], second[index]);
      }
    }
    return Integer.compare(first.length, second.length);
  }
}
