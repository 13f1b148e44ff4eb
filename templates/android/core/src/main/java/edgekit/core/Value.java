package edgekit.core;

/** An output: a tensor or, where it is none, what it is instead. */
public final class Value {
  public final Tensor tensor;

  /** The type as ONNX spells it, of what is no tensor; else null. */
  public final String type;

  private Value(Tensor tensor, String type) {
    this.tensor = tensor;
    this.type = type;
  }

  public static Value of(Tensor tensor) {
    return new Value(tensor, null);
  }

  public static Value noTensor(String type) {
    return new Value(null, type);
  }
}
