package edgekit.core;

import java.util.List;
import java.util.Map;

/** Reads fields of JSON documents, and says what is wrong with those that are not as they should be. */
final class Fields {
  private static final long MAX_COUNT = 1L << 48;

  private Fields() {}

  @SuppressWarnings("unchecked")
  static Map<String, Object> map(Object value, String what) {
    if (!(value instanceof Map)) {
      throw new IllegalArgumentException(what + " is no JSON object.");
    }
    return (Map<String, Object>) value;
  }

  static List<?> list(Object value, String what) {
    if (!(value instanceof List)) {
      throw new IllegalArgumentException(what + " is no JSON array.");
    }
    return (List<?>) value;
  }

  static String text(Object value, String what) {
    if (!(value instanceof String)) {
      throw new IllegalArgumentException(what + " is no text.");
    }
    return (String) value;
  }

  static long count(Object value, String what) {
    if (!(value instanceof Long) || (Long) value < 0 || (Long) value >= MAX_COUNT) {
      throw new IllegalArgumentException(what + " is no number of anything.");
    }
    return (Long) value;
  }

  static long[] counts(Object value, String key) {
    List<?> given = list(value, "A list of '" + key + "'");
    long[] counts = new long[given.size()];
    for (int index = 0; index < counts.length; index++) {
      counts[index] = count(given.get(index), "An entry of '" + key + "'");
    }
    return counts;
  }
}
