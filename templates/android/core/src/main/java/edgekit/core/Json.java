package edgekit.core;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON (RFC 8259) to and from maps, lists, strings, numbers, booleans and null: strict, and bounded in depth.
 *
 * <p>Whole numbers are {@code Long}, others {@code Double}. Maps keep the order of the text.
 */
public final class Json {
  private static final int MAX_DEPTH = 100;

  private final String text;
  private int at;

  private Json(String text) {
    this.text = text;
  }

  /** Reads one value. Throws IllegalArgumentException that names the place of what is wrong. */
  public static Object read(String text) {
    Json json = new Json(text);
    Object value = json.value(0);
    json.space();
    if (json.at != text.length()) {
      throw json.wrong("something follows the value");
    }
    return value;
  }

  private Object value(int depth) {
    if (depth > MAX_DEPTH) {
      throw wrong("it is nested too deep");
    }
    space();
    if (at == text.length()) {
      throw wrong("it ends too early");
    }
    char first = text.charAt(at);
    switch (first) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      case 't':
        return word("true", Boolean.TRUE);
      case 'f':
        return word("false", Boolean.FALSE);
      case 'n':
        return word("null", null);
      default:
        return number();
    }
  }

  private Map<String, Object> object(int depth) {
    Map<String, Object> found = new LinkedHashMap<>();
    at++;
    space();
    if (peek() == '}') {
      at++;
      return found;
    }
    while (true) {
      space();
      if (peek() != '"') {
        throw wrong("a name is missing");
      }
      String name = string();
      space();
      expect(':');
      if (found.containsKey(name)) {
        throw wrong("it names something twice");
      }
      found.put(name, value(depth + 1));
      space();
      if (peek() == '}') {
        at++;
        return found;
      }
      expect(',');
    }
  }

  private List<Object> array(int depth) {
    List<Object> found = new ArrayList<>();
    at++;
    space();
    if (peek() == ']') {
      at++;
      return found;
    }
    while (true) {
      found.add(value(depth + 1));
      space();
      if (peek() == ']') {
        at++;
        return found;
      }
      expect(',');
    }
  }

  private String string() {
    StringBuilder found = new StringBuilder();
    at++;
    while (true) {
      char next = peek();
      at++;
      if (next == '"') {
        return found.toString();
      }
      if (next < ' ') {
        throw wrong("a control character is in a string");
      }
      found.append(next == '\\' ? escaped() : next);
    }
  }

  private char escaped() {
    char kind = peek();
    at++;
    int simple = "\"\\/bfnrt".indexOf(kind);
    if (simple >= 0) {
      return "\"\\/\b\f\n\r\t".charAt(simple);
    }
    if (kind != 'u' || at + 4 > text.length()) {
      throw wrong("an escape is unknown");
    }
    int code = 0;
    for (int end = at + 4; at < end; at++) {
      int digit = Character.digit(text.charAt(at), 16);
      if (digit < 0 || text.charAt(at) > 'f') {
        throw wrong("an escape is unknown");
      }
      code = 16 * code + digit;
    }
    return (char) code;
  }

  private Object word(String word, Object value) {
    if (!text.startsWith(word, at)) {
      throw wrong("a word is unknown");
    }
    at += word.length();
    return value;
  }

  private Object number() {
    int start = at;
    if (peek() == '-') {
      at++;
    }
    int digits = at;
    digits();
    if (text.charAt(digits) == '0' && at > digits + 1) {
      throw wrong("a number begins with 0");
    }
    boolean whole = true;
    if (at < text.length() && text.charAt(at) == '.') {
      at++;
      digits();
      whole = false;
    }
    if (at < text.length() && (text.charAt(at) | 0x20) == 'e') {
      at++;
      if (peek() == '+' || peek() == '-') {
        at++;
      }
      digits();
      whole = false;
    }
    String number = text.substring(start, at);
    try {
      return whole ? (Object) Long.valueOf(number) : Double.valueOf(number);
    } catch (NumberFormatException error) {
      return Double.valueOf(number); // more digits than a long has
    }
  }

  private void digits() {
    int start = at;
    while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
      at++;
    }
    if (at == start) {
      throw wrong("a value is unknown");
    }
  }

  private void space() {
    while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
  }

  private char peek() {
    if (at == text.length()) {
      throw wrong("it ends too early");
    }
    return text.charAt(at);
  }

  private void expect(char wanted) {
    if (peek() != wanted) {
      throw wrong("'" + wanted + "' is missing");
    }
    at++;
  }

  private IllegalArgumentException wrong(String what) {
    return new IllegalArgumentException("This is not JSON: " + what + " at character " + at + ".");
  }

  /** Writes a value that is made of what {@link #read} gives, int arrays and long arrays included. */
  public static String write(Object value) {
    StringBuilder written = new StringBuilder();
    write(value, written);
    return written.toString();
  }

  private static void write(Object value, StringBuilder written) {
    if (value == null || value instanceof Boolean || value instanceof Long || value instanceof Integer) {
      written.append(value);
    } else if (value instanceof Double) {
      double number = (Double) value;
      if (Double.isNaN(number) || Double.isInfinite(number)) {
        throw new IllegalArgumentException(number + " is not JSON.");
      }
      written.append(number);
    } else if (value instanceof String) {
      write((String) value, written);
    } else if (value instanceof long[]) {
      written.append('[');
      String between = "";
      for (long one : (long[]) value) {
        written.append(between).append(one);
        between = ",";
      }
      written.append(']');
    } else if (value instanceof Iterable) {
      written.append('[');
      String between = "";
      for (Object one : (Iterable<?>) value) {
        written.append(between);
        write(one, written);
        between = ",";
      }
      written.append(']');
    } else if (value instanceof Map) {
      written.append('{');
      String between = "";
      for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
        written.append(between);
        write((String) entry.getKey(), written);
        written.append(':');
        write(entry.getValue(), written);
        between = ",";
      }
      written.append('}');
    } else {
      throw new IllegalArgumentException(value.getClass() + " is not JSON.");
    }
  }

  // As Python writes it with ensure_ascii=False: what must be escaped, and nothing else.
  private static void write(String text, StringBuilder written) {
    written.append('"');
    for (int index = 0; index < text.length(); index++) {
      char next = text.charAt(index);
      int simple = "\"\\\b\f\n\r\t".indexOf(next);
      if (simple >= 0) {
        written.append('\\').append("\"\\bfnrt".charAt(simple));
      } else if (next < ' ') {
        written.append(String.format("\\u%04x", (int) next));
      } else {
        written.append(next);
      }
    }
    written.append('"');
  }
}
