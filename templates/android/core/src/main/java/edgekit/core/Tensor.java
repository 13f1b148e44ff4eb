package edgekit.core;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.util.Arrays;

/** A tensor: numbers as little-endian bytes, row by row, or strings. */
public final class Tensor {
  public final Dtype dtype;
  public final long[] shape;
  private final ByteBuffer data;
  private final String[] strings;

  private Tensor(Dtype dtype, long[] shape, ByteBuffer data, String[] strings) {
    this.dtype = dtype;
    this.shape = shape.clone();
    this.data = data;
    this.strings = strings;
    long held = strings != null ? strings.length : (long) data.remaining() / dtype.bytes;
    if (held != count(shape) || (strings == null && data.remaining() % dtype.bytes != 0)) {
      throw new IllegalArgumentException(
          "A tensor " + dtype.label() + " " + Arrays.toString(shape) + " does not hold " + held + " elements.");
    }
  }

  /** Numbers from the bytes that remain in {@code data}, which is not copied. */
  public static Tensor of(Dtype dtype, long[] shape, ByteBuffer data) {
    if (dtype == Dtype.STRING) {
      throw new IllegalArgumentException("Strings are no bytes.");
    }
    return new Tensor(dtype, shape, data.slice().order(ByteOrder.LITTLE_ENDIAN), null);
  }

  public static Tensor of(long[] shape, float... values) {
    ByteBuffer data = bytes(values.length, 4);
    data.asFloatBuffer().put(values);
    return of(Dtype.FLOAT32, shape, data);
  }

  public static Tensor of(long[] shape, long... values) {
    ByteBuffer data = bytes(values.length, 8);
    data.asLongBuffer().put(values);
    return of(Dtype.INT64, shape, data);
  }

  public static Tensor of(long[] shape, String... values) {
    return new Tensor(Dtype.STRING, shape, null, values.clone());
  }

  /** Zeros, or empty strings. */
  public static Tensor zeros(Dtype dtype, long[] shape) {
    int count = Math.toIntExact(count(shape));
    if (dtype == Dtype.STRING) {
      String[] empty = new String[count];
      Arrays.fill(empty, "");
      return of(shape, empty);
    }
    return of(dtype, shape, bytes(count, dtype.bytes));
  }

  // Direct, because a runtime then reads them in place.
  private static ByteBuffer bytes(int count, int bytes) {
    return ByteBuffer.allocateDirect(Math.multiplyExact(count, bytes)).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** How many elements a shape has. Throws IllegalArgumentException for one that has no number of them. */
  public static long count(long[] shape) {
    long count = 1;
    for (long size : shape) {
      if (size < 0) {
        throw new IllegalArgumentException("A size of " + Arrays.toString(shape) + " is negative.");
      }
      try {
        count = Math.multiplyExact(count, size);
      } catch (ArithmeticException error) {
        throw new IllegalArgumentException(Arrays.toString(shape) + " is larger than any tensor.");
      }
    }
    return count;
  }

  /** The numbers, as little-endian bytes that others do not move through. */
  public ByteBuffer data() {
    return data.duplicate().order(ByteOrder.LITTLE_ENDIAN);
  }

  public String[] strings() {
    return strings.clone();
  }

  public boolean hasStrings() {
    return strings != null;
  }

  /** The numbers of a float32 tensor. Throws IllegalStateException for another. */
  public float[] floats() {
    require(Dtype.FLOAT32);
    FloatBuffer view = data().asFloatBuffer();
    float[] values = new float[view.remaining()];
    view.get(values);
    return values;
  }

  /** The numbers of an int64 tensor. Throws IllegalStateException for another. */
  public long[] longs() {
    require(Dtype.INT64);
    LongBuffer view = data().asLongBuffer();
    long[] values = new long[view.remaining()];
    view.get(values);
    return values;
  }

  private void require(Dtype wanted) {
    if (dtype != wanted) {
      throw new IllegalStateException("This tensor is of " + dtype.label() + ", not of " + wanted.label() + ".");
    }
  }

  /** Whether every bit is equal: NaN equals the same NaN, and -0 differs from 0. */
  public boolean sameBits(Tensor other) {
    return dtype == other.dtype
        && Arrays.equals(shape, other.shape)
        && (strings != null ? Arrays.equals(strings, other.strings) : data().equals(other.data()));
  }

  /** The first elements, for people. */
  public String preview(int most) {
    StringBuilder shown = new StringBuilder(dtype.label()).append(' ').append(Arrays.toString(shape)).append(": ");
    long count = count(shape);
    for (int index = 0; index < Math.min(count, most); index++) {
      shown.append(index == 0 ? "" : ", ").append(element(index));
    }
    return shown.append(count > most ? ", …" : "").toString();
  }

  private Object element(int index) {
    if (strings != null) {
      return strings[index];
    }
    ByteBuffer bytes = data();
    switch (dtype) {
      case FLOAT32:
        return bytes.getFloat(4 * index);
      case FLOAT64:
        return bytes.getDouble(8 * index);
      case INT64:
        return bytes.getLong(8 * index);
      case UINT64:
        return Long.toUnsignedString(bytes.getLong(8 * index));
      case INT32:
        return bytes.getInt(4 * index);
      case UINT32:
        return bytes.getInt(4 * index) & 0xFFFFFFFFL;
      case INT16:
        return bytes.getShort(2 * index);
      case UINT16:
        return bytes.getShort(2 * index) & 0xFFFF;
      case INT8:
        return bytes.get(index);
      case UINT8:
        return bytes.get(index) & 0xFF;
      case BOOL:
        return bytes.get(index) != 0;
      default: // 16-bit floats: the bits
        return String.format("0x%04x", bytes.getShort(2 * index));
    }
  }
}
