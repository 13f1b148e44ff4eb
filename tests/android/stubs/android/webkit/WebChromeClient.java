package android.webkit;

import android.content.Intent;
import android.net.Uri;

public class WebChromeClient {
  public boolean onShowFileChooser(WebView view, ValueCallback<Uri[]> callback, FileChooserParams params) {
    return false;
  }

  public abstract static class FileChooserParams {
    public abstract Intent createIntent();

    public static Uri[] parseResult(int result, Intent data) {
      return result == -1 ? new Uri[] {new Uri(data.what)} : null;
    }
  }
}
