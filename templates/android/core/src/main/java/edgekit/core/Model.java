package edgekit.core;

import java.io.Closeable;
import java.util.Map;

/** A model that runs. */
public interface Model extends Closeable {
  /** Runs it once. Throws an exception, whose message names what is wrong, when it refuses. */
  Map<String, Value> run(Map<String, Tensor> inputs) throws Exception;

  @Override
  void close();
}
