import edgekit.core.GoldenCase;
import edgekit.core.Json;
import edgekit.core.Model;
import edgekit.core.Replay;
import edgekit.core.RunRecord;
import edgekit.core.Tensor;
import edgekit.core.TensorFile;
import edgekit.core.Value;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Drives the plain core on a desktop's JVM, for the tests. */
public final class CoreDrive {
  public static void main(String[] arguments) throws Exception {
    List<String> rest = Arrays.asList(arguments).subList(1, arguments.length);
    switch (arguments[0]) {
      case "files":
        files(Path.of(rest.get(0)), Path.of(rest.get(1)));
        break;
      case "replay":
        replay(rest);
        break;
      default:
        throw new IllegalArgumentException(arguments[0]);
    }
  }

  /** Reads every file of a folder, and writes what it read into another; prints what came of each, as JSON. */
  private static void files(Path from, Path to) throws Exception {
    Map<String, Object> said = new LinkedHashMap<>();
    List<Path> found;
    try (Stream<Path> all = Files.list(from)) {
      found = all.sorted().collect(Collectors.toList());
    }
    for (Path file : found) {
      byte[] data = Files.readAllBytes(file);
      String name = file.getFileName().toString();
      try {
        byte[] again;
        if (name.endsWith(".json")) {
          again = Json.write(Json.read(new String(data, StandardCharsets.UTF_8))).getBytes(StandardCharsets.UTF_8);
        } else {
          again = TensorFile.write(TensorFile.read(ByteBuffer.wrap(data)));
        }
        Files.write(to.resolve(name), again);
        said.put(name, "read");
      } catch (IllegalArgumentException error) {
        said.put(name, error.getMessage());
      }
    }
    System.out.println(Json.write(said));
  }

  /** Replays the cases in a folder; the model gives back what the cases say, or refuses. */
  private static void replay(List<String> given) throws Exception {
    Path cases = Path.of(given.get(0));
    Path to = Path.of(given.get(1));
    String how = given.get(2);
    RunRecord record = new RunRecord(given.get(5), given.get(3), given.get(4), null);
    List<GoldenCase> read;
    try (FileChannel file = FileChannel.open(cases.resolve("cases.safetensors"))) {
      read = GoldenCase.read(Files.readString(cases.resolve("cases.json")),
          file.map(FileChannel.MapMode.READ_ONLY, 0, file.size()));
    }
    List<String> chosen = given.size() > 7 ? given.subList(7, given.size()) : null;
    record.attempt(new RunRecord.Attempt("xnnpack", "refused", "It is not in this build."));
    record.attempt(new RunRecord.Attempt("cpu", "created", null));
    record.environment("onnxruntime-android", given.get(6), "cpu", "cpu", 4, "JVM", true);
    try (Model model = model(how, read)) {
      Replay.run(model, read, chosen, 2, 1.5, record);
    }
    Files.write(to.resolve("record.safetensors"), record.tensors());
    Files.write(to.resolve("record.json"), record.document());
  }

  private static Model model(String how, List<GoldenCase> cases) {
    return new Model() {
      @Override
      public Map<String, Value> run(Map<String, Tensor> inputs) {
        if (how.equals("refuse")) {
          throw new IllegalStateException("It refuses \"everything\" \u2028 \ud83d\ude00.");
        }
        for (GoldenCase one : cases) {
          boolean same = one.inputs.keySet().equals(inputs.keySet());
          for (String name : inputs.keySet()) {
            same = same && one.inputs.get(name).sameBits(inputs.get(name));
          }
          if (same) {
            Map<String, Value> outputs = new LinkedHashMap<>();
            one.outputs.forEach((name, tensor) -> outputs.put(name, Value.of(tensor)));
            outputs.put("no tensor", Value.noTensor("seq(tensor(float))"));
            return outputs;
          }
        }
        throw new IllegalStateException("No case has these inputs.");
      }

      @Override
      public void close() {}
    };
  }
}
