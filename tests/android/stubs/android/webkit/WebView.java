package android.webkit;

import android.content.Context;
import android.view.View;

public class WebView extends View {
  public static Boolean debugging;
  public final WebSettings settings = new WebSettings();
  public WebViewClient client;
  public WebChromeClient chrome;
  public String url;
  public boolean destroyed;

  public WebView(Context context) {}

  public static void setWebContentsDebuggingEnabled(boolean on) {
    debugging = on;
  }

  public WebSettings getSettings() {
    return settings;
  }

  public void setWebViewClient(WebViewClient client) {
    this.client = client;
  }

  public void setWebChromeClient(WebChromeClient chrome) {
    this.chrome = chrome;
  }

  public void loadUrl(String url) {
    this.url = url;
  }

  public void destroy() {
    destroyed = true;
  }
}
