package edgekit.core;

import java.util.Locale;

/** The element types of tensors, in the order in which a file lays them out: wide ones first, so that all are aligned. */
public enum Dtype {
  UINT64("U64", 8),
  INT64("I64", 8),
  FLOAT64("F64", 8),
  FLOAT32("F32", 4),
  UINT32("U32", 4),
  INT32("I32", 4),
  BFLOAT16("BF16", 2),
  FLOAT16("F16", 2),
  UINT16("U16", 2),
  INT16("I16", 2),
  INT8("I8", 1),
  UINT8("U8", 1),
  BOOL("BOOL", 1),
  /** Not in files of tensors: strings travel as JSON. */
  STRING(null, 0);

  /** The name that safetensors has for it. */
  final String stored;

  /** Of one element. */
  public final int bytes;

  Dtype(String stored, int bytes) {
    this.stored = stored;
    this.bytes = bytes;
  }

  /** The name that edgekit has for it: "float32". */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  static Dtype ofStored(Object stored) {
    for (Dtype dtype : values()) {
      if (dtype.stored != null && dtype.stored.equals(stored)) {
        return dtype;
      }
    }
    throw new IllegalArgumentException(stored + " is a type that ONNX models do not take.");
  }

  static Dtype ofLabel(String label) {
    for (Dtype dtype : values()) {
      if (dtype.label().equals(label)) {
        return dtype;
      }
    }
    return null;
  }
}
