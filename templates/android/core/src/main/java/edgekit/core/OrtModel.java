package edgekit.core;

import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.TensorInfo;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A model in onnxruntime. */
public final class OrtModel implements Model {
  private static final Map<Dtype, OnnxJavaType> TYPES = new EnumMap<>(Dtype.class);

  static {
    TYPES.put(Dtype.FLOAT32, OnnxJavaType.FLOAT);
    TYPES.put(Dtype.FLOAT64, OnnxJavaType.DOUBLE);
    TYPES.put(Dtype.FLOAT16, OnnxJavaType.FLOAT16);
    TYPES.put(Dtype.BFLOAT16, OnnxJavaType.BFLOAT16);
    TYPES.put(Dtype.INT8, OnnxJavaType.INT8);
    TYPES.put(Dtype.INT16, OnnxJavaType.INT16);
    TYPES.put(Dtype.INT32, OnnxJavaType.INT32);
    TYPES.put(Dtype.INT64, OnnxJavaType.INT64);
    TYPES.put(Dtype.UINT8, OnnxJavaType.UINT8);
    TYPES.put(Dtype.BOOL, OnnxJavaType.BOOL);
  }

  private final OrtEnvironment environment;
  private final OrtSession session;

  /** The execution provider that the session was created with: "xnnpack", "cpu" or "nnapi". */
  public final String executionProvider;

  /** How many threads compute. */
  public final int threads;

  private OrtModel(OrtEnvironment environment, OrtSession session, String executionProvider, int threads) {
    this.environment = environment;
    this.session = session;
    this.executionProvider = executionProvider;
    this.threads = threads;
  }

  /**
   * Opens a model with the first of {@code providers} that takes it. {@code model}: its bytes in direct memory, such as
   * a file that is mapped, or null for the file at {@code path}. {@code threads}: 0: four, or as many as there are cores.
   * {@code attempts} gets what was tried. Throws OrtException, of the last provider, when none takes it.
   */
  public static OrtModel open(
      ByteBuffer model, String path, List<String> providers, int threads, List<RunRecord.Attempt> attempts)
      throws OrtException {
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    environment.setTelemetry(false);
    int count = threads > 0 ? threads : Math.max(1, Math.min(4, Runtime.getRuntime().availableProcessors()));
    OrtException last = new OrtException("No execution provider was named.");
    for (String provider : providers) {
      try (SessionOptions options = new SessionOptions()) {
        configure(options, provider, count);
        OrtSession session =
            model != null ? environment.createSession(model, options) : environment.createSession(path, options);
        attempts.add(new RunRecord.Attempt(provider, "created", null));
        return new OrtModel(environment, session, provider, count);
      } catch (OrtException error) {
        attempts.add(new RunRecord.Attempt(provider, "refused", Replay.said(error)));
        last = error;
      }
    }
    throw last;
  }

  private static void configure(SessionOptions options, String provider, int threads) throws OrtException {
    switch (provider) {
      case "cpu":
        options.setIntraOpNumThreads(threads);
        break;
      case "xnnpack":
        // XNNPACK has threads of its own; onnxruntime's would wait for work by spinning beside them.
        options.addXnnpack(Collections.singletonMap("intra_op_num_threads", Integer.toString(threads)));
        options.addConfigEntry("session.intra_op.allow_spinning", "0");
        options.setIntraOpNumThreads(1);
        break;
      case "nnapi":
        options.addNnapi();
        options.setIntraOpNumThreads(threads);
        break;
      default:
        throw new OrtException("This app knows no execution provider '" + provider + "'.");
    }
  }

  public static String version() {
    return OrtEnvironment.getEnvironment().getVersion();
  }

  @Override
  public Map<String, Value> run(Map<String, Tensor> inputs) throws OrtException {
    Map<String, OnnxTensor> given = new LinkedHashMap<>();
    try {
      for (Map.Entry<String, Tensor> input : inputs.entrySet()) {
        given.put(input.getKey(), toOrt(input.getKey(), input.getValue()));
      }
      Map<String, Value> outputs = new LinkedHashMap<>();
      try (OrtSession.Result result = session.run(given)) {
        for (Map.Entry<String, OnnxValue> output : result) {
          outputs.put(output.getKey(), fromOrt(output.getValue()));
        }
      }
      return outputs;
    } finally {
      given.values().forEach(OnnxTensor::close);
    }
  }

  private OnnxTensor toOrt(String name, Tensor tensor) throws OrtException {
    if (tensor.hasStrings()) {
      return OnnxTensor.createTensor(environment, tensor.strings(), tensor.shape);
    }
    OnnxJavaType type = TYPES.get(tensor.dtype);
    if (type == null) {
      throw new OrtException("The input '" + name + "' is of " + tensor.dtype.label() + ", which onnxruntime does not"
          + " take from Java.");
    }
    // Its buffers are read in the order of this machine, which is little-endian wherever Android runs.
    return OnnxTensor.createTensor(environment, direct(tensor.data()), tensor.shape, type);
  }

  private static ByteBuffer direct(ByteBuffer data) {
    if (data.isDirect()) {
      return data.slice().order(ByteOrder.nativeOrder());
    }
    ByteBuffer copy = ByteBuffer.allocateDirect(data.remaining()).order(ByteOrder.nativeOrder());
    copy.put(data).flip();
    return copy;
  }

  private static Value fromOrt(OnnxValue value) throws OrtException {
    if (!(value instanceof OnnxTensor)) {
      return Value.noTensor(value.getInfo().toString());
    }
    OnnxTensor tensor = (OnnxTensor) value;
    TensorInfo info = tensor.getInfo();
    if (info.type == OnnxJavaType.STRING) {
      List<String> strings = new ArrayList<>();
      collect(tensor.getValue(), strings);
      return Value.of(Tensor.of(info.getShape(), strings.toArray(new String[0])));
    }
    Dtype dtype = dtype(info);
    return dtype == null
        ? Value.noTensor(info.toString())
        : Value.of(Tensor.of(dtype, info.getShape(), tensor.getByteBuffer())); // a copy: the tensor is closed soon
  }

  private static void collect(Object value, List<String> strings) {
    if (value instanceof Object[]) {
      for (Object one : (Object[]) value) {
        collect(one, strings);
      }
    } else {
      strings.add((String) value);
    }
  }

  // By ONNX's type, because Java's has no unsigned ones.
  private static Dtype dtype(TensorInfo info) {
    switch (info.onnxType) {
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        return Dtype.FLOAT32;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
        return Dtype.FLOAT64;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
        return Dtype.FLOAT16;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
        return Dtype.BFLOAT16;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
        return Dtype.INT8;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
        return Dtype.UINT8;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
        return Dtype.INT16;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
        return Dtype.UINT16;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
        return Dtype.INT32;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
        return Dtype.UINT32;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
        return Dtype.INT64;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
        return Dtype.UINT64;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
        return Dtype.BOOL;
      default:
        return null;
    }
  }

  @Override
  public void close() {
    try {
      session.close();
    } catch (OrtException error) {
      throw new IllegalStateException(error);
    }
  }
}
