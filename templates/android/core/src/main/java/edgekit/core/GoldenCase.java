package edgekit.core;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A golden case: inputs, and the outputs that the reference gave. */
public final class GoldenCase {
  public final String id;
  public final Map<String, Tensor> inputs;
  public final Map<String, Tensor> outputs;

  /** How often the model runs, each time given its own outputs back as inputs; 1 for most cases. */
  public final int steps;

  /** By input: the output that is given back as it. */
  public final Map<String, String> links;

  private GoldenCase(
      String id, Map<String, Tensor> inputs, Map<String, Tensor> outputs, int steps, Map<String, String> links) {
    this.id = id;
    this.inputs = inputs;
    this.outputs = outputs;
    this.steps = steps;
    this.links = links;
  }

  /** Reads cases.json and cases.safetensors. Throws IllegalArgumentException that says what is wrong with them. */
  public static List<GoldenCase> read(String document, ByteBuffer tensorFile) {
    Map<String, Object> whole = Fields.map(Json.read(document), "cases.json");
    if (!Long.valueOf(1).equals(whole.get("format"))) {
      throw new IllegalArgumentException("cases.json is of another format than this app knows.");
    }
    Map<String, Tensor> tensors = TensorFile.read(tensorFile);
    List<GoldenCase> found = new ArrayList<>();
    for (Object one : Fields.list(whole.get("cases"), "The list of cases")) {
      Map<String, Object> entry = Fields.map(one, "A case");
      String id = Fields.text(entry.get("id"), "The id of a case");
      int steps = 1;
      Map<String, String> links = new LinkedHashMap<>();
      if (entry.get("feed_back") != null) {
        Map<String, Object> loop = Fields.map(entry.get("feed_back"), "A loop");
        steps = Math.toIntExact(Fields.count(loop.get("steps"), "The number of steps"));
        for (Map.Entry<String, Object> link : Fields.map(loop.get("links"), "The links of a loop").entrySet()) {
          links.put(link.getKey(), Fields.text(link.getValue(), "A link"));
        }
      }
      found.add(
          new GoldenCase(id, values(entry.get("inputs"), tensors), values(entry.get("outputs"), tensors), steps, links));
    }
    return found;
  }

  private static Map<String, Tensor> values(Object entries, Map<String, Tensor> tensors) {
    Map<String, Tensor> found = new LinkedHashMap<>();
    for (Object one : Fields.list(entries, "The values of a case")) {
      Map<String, Object> entry = Fields.map(one, "A value");
      String name = Fields.text(entry.get("name"), "The name of a value");
      if (entry.get("strings") != null) {
        List<?> strings = Fields.list(entry.get("strings"), "The strings of '" + name + "'");
        String[] values = new String[strings.size()];
        for (int index = 0; index < values.length; index++) {
          values[index] = Fields.text(strings.get(index), "A string of '" + name + "'");
        }
        found.put(name, Tensor.of(Fields.counts(entry.get("shape"), name), values));
      } else if (entry.get("key") != null) {
        Tensor tensor = tensors.get(Fields.text(entry.get("key"), "The key of '" + name + "'"));
        if (tensor == null) {
          throw new IllegalArgumentException("The tensor of '" + name + "' is named but not stored.");
        }
        found.put(name, tensor);
      }
      // What is neither is no tensor, and is not compared.
    }
    return found;
  }
}
