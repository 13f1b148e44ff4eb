package edgekit.core;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Replays golden cases on a model, and puts what came out into a record. */
public final class Replay {
  private Replay() {}

  /**
   * Runs the cases. {@code chosen}: their ids; null: all, others are skipped. {@code repeats}: timed runs after the
   * first, of the first case without a loop. {@code createMs}: how long the session took.
   */
  public static void run(
      Model model, List<GoldenCase> cases, Collection<String> chosen, int repeats, double createMs, RunRecord record) {
    for (String id : chosen == null ? new ArrayList<String>() : chosen) {
      if (cases.stream().noneMatch(one -> one.id.equals(id))) {
        record.error("There is no golden case '" + id + "'.");
        return;
      }
    }
    GoldenCase timed = null;
    Double first = null;
    for (GoldenCase one : cases) {
      if (chosen != null && !chosen.contains(one.id)) {
        record.skipped(one.id);
        continue;
      }
      try {
        long start = System.nanoTime();
        Map<String, Value> outputs = runCase(model, one);
        double took = milliseconds(start);
        record.done(one.id, outputs, took);
        if (timed == null && one.links.isEmpty() && one.steps == 1) {
          timed = one;
          first = took;
        }
        record.again(one.id, different(outputs, runCase(model, one)));
      } catch (Exception error) {
        record.failed(one.id, said(error));
      }
    }
    record.timings(createMs, first, later(model, timed, repeats));
  }

  /** Returns the second run's outputs, or null where every bit is as in the first. */
  private static Map<String, Value> different(Map<String, Value> before, Map<String, Value> now) {
    for (Map.Entry<String, Value> one : now.entrySet()) {
      Tensor then = before.get(one.getKey()).tensor;
      Tensor tensor = one.getValue().tensor;
      if (then == null ? tensor != null : tensor == null || !then.sameBits(tensor)) {
        return now;
      }
    }
    return null;
  }

  private static Map<String, Value> runCase(Model model, GoldenCase one) throws Exception {
    Map<String, Tensor> inputs = new LinkedHashMap<>(one.inputs);
    Map<String, Value> outputs = model.run(inputs);
    for (int step = 1; step < one.steps; step++) {
      for (Map.Entry<String, String> link : one.links.entrySet()) {
        Value given = outputs.get(link.getValue());
        if (given == null || given.tensor == null) {
          throw new IllegalStateException("The output '" + link.getValue() + "' cannot be given back.");
        }
        inputs.put(link.getKey(), given.tensor);
      }
      outputs = model.run(inputs);
    }
    return outputs;
  }

  private static List<Double> later(Model model, GoldenCase timed, int repeats) {
    List<Double> took = new ArrayList<>();
    for (int run = 0; timed != null && run < repeats; run++) {
      long start = System.nanoTime();
      try {
        model.run(timed.inputs);
      } catch (Exception error) {
        break; // it ran before; its time is no longer of interest
      }
      took.add(milliseconds(start));
    }
    return took;
  }

  private static double milliseconds(long since) {
    return (System.nanoTime() - since) / 1e6;
  }

  /** What an exception says, or at least what it is. */
  public static String said(Throwable error) {
    return error.getMessage() != null ? error.getMessage() : error.toString();
  }
}
