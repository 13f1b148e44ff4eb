package android.webkit;

import java.util.TreeMap;

public class WebSettings {
  public final TreeMap<String, Boolean> said = new TreeMap<>();

  public void setJavaScriptEnabled(boolean on) {
    said.put("javascript", on);
  }

  public void setAllowFileAccess(boolean on) {
    said.put("files", on);
  }

  public void setAllowContentAccess(boolean on) {
    said.put("content", on);
  }

  public void setGeolocationEnabled(boolean on) {
    said.put("place", on);
  }
}
