package edgekit.core;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What this device reports: record.json, and beside it record.safetensors. The device judges nothing. */
public final class RunRecord {
  private static final String NO_TENSOR = "It is no tensor, and was not compared.";

  /** One attempt to create a session: "created", "refused" or "unavailable", and why. */
  public static final class Attempt {
    final Map<String, Object> said = new LinkedHashMap<>();

    public Attempt(String executionProvider, String status, String reason) {
      said.put("variant", executionProvider);
      said.put("execution_provider", executionProvider);
      said.put("status", status);
      said.put("reason", reason);
    }
  }

  private final Map<String, Object> document = new LinkedHashMap<>();
  private final Map<String, Object> environment = new LinkedHashMap<>();
  private final Map<String, Object> timings = new LinkedHashMap<>();
  private final List<Object> attempts = new ArrayList<>();
  private final List<Object> again = new ArrayList<>();
  private final List<Object> cases = new ArrayList<>();
  private final Map<String, Tensor> tensors = new LinkedHashMap<>();

  /** Starts a record of the run that was asked for as {@code run}. Hashes are lower-case and hexadecimal. */
  public RunRecord(String run, String manifestSha256, String modelSha256, String runtimeSha256) {
    Map<String, Object> hashes = new LinkedHashMap<>();
    hashes.put("manifest", manifestSha256);
    hashes.put("model", modelSha256);
    hashes.put("runtime", runtimeSha256);
    document.put("format", 1L);
    document.put("run", run);
    document.put("hashes", hashes);
    document.put("environment", environment);
    document.put("attempts", attempts);
    document.put("timings", timings);
    document.put("error", null);
    document.put("misses", new ArrayList<>());
    document.put("placement", null);
    document.put("again", again);
    document.put("soak", null);
    document.put("cases", cases);
    for (String name : new String[] {"fetch_ms", "compile_ms", "create_ms", "first_run_ms"}) {
      timings.put(name, null);
    }
    timings.put("later_run_ms", new ArrayList<>());
  }

  /** Says where it ran. {@code ran}: the execution provider of the session; null where there is none. */
  public void environment(
      String runtime, String version, String asked, String ran, int threads, String device, boolean emulated) {
    environment.put("runner", "adb");
    environment.put("runtime", runtime);
    environment.put("runtime_version", version);
    environment.put("variant", ran);
    environment.put("execution_provider_asked", asked);
    environment.put("execution_provider", ran);
    environment.put("threads", (long) threads);
    environment.put("cross_origin_isolated", null);
    environment.put("adapter", null);
    environment.put("user_agent", null);
    environment.put("device", device);
    environment.put("session", null);
    environment.put("emulated", emulated);
  }

  public void attempt(Attempt attempt) {
    attempts.add(attempt.said);
  }

  /** Says why there is no session. */
  public void error(String why) {
    document.put("error", why);
  }

  /** Milliseconds; null: not measured. */
  public void timings(Double create, Double first, List<Double> later) {
    timings.put("create_ms", create);
    timings.put("first_run_ms", first);
    timings.put("later_run_ms", new ArrayList<Object>(later));
  }

  public void done(String id, Map<String, Value> outputs, double milliseconds) {
    cases.add(entry(id, "done", null, milliseconds, put(id + "/output", outputs)));
  }

  public void failed(String id, String why) {
    cases.add(entry(id, "failed", why, null, new ArrayList<>()));
  }

  public void skipped(String id) {
    cases.add(entry(id, "skipped", null, null, new ArrayList<>()));
  }

  /** A case that ran once more in the same session; {@code outputs}: null where every bit was the same. */
  public void again(String id, Map<String, Value> outputs) {
    Map<String, Object> said = new LinkedHashMap<>();
    said.put("id", id);
    said.put("session", "same");
    said.put("equal", outputs == null);
    said.put("error", null);
    said.put("outputs", outputs == null ? new ArrayList<>() : put(id + "/again-same", outputs));
    again.add(said);
  }

  private static Map<String, Object> entry(
      String id, String status, String error, Double milliseconds, List<Object> outputs) {
    Map<String, Object> said = new LinkedHashMap<>();
    said.put("id", id);
    said.put("status", status);
    said.put("error", error);
    said.put("run_ms", milliseconds);
    said.put("outputs", outputs);
    return said;
  }

  private List<Object> put(String prefix, Map<String, Value> values) {
    List<Object> entries = new ArrayList<>();
    for (Map.Entry<String, Value> one : values.entrySet()) {
      Map<String, Object> said = new LinkedHashMap<>();
      Tensor tensor = one.getValue().tensor;
      said.put("name", one.getKey());
      said.put("dtype", tensor == null ? one.getValue().type : tensor.dtype.label());
      said.put("shape", tensor == null ? null : tensor.shape);
      if (tensor == null) {
        said.put("note", NO_TENSOR);
      } else if (tensor.hasStrings()) {
        said.put("strings", java.util.Arrays.asList(tensor.strings()));
      } else {
        String key = prefix + "/" + one.getKey();
        said.put("key", key);
        tensors.put(key, tensor);
      }
      entries.add(said);
    }
    return entries;
  }

  /** The bytes of record.json. */
  public byte[] document() {
    return Json.write(document).getBytes(StandardCharsets.UTF_8);
  }

  /** The bytes of record.safetensors. */
  public byte[] tensors() {
    return TensorFile.write(tensors);
  }
}
