import android.app.Activity;
import android.content.Intent;
import android.content.res.AssetManager;
import android.net.Uri;
import android.webkit.WebChromeClient;
import android.webkit.WebResourceRequest;
import android.webkit.WebResourceResponse;
import android.webkit.WebView;
import android.widget.FrameLayout;
import edgekit.webview.PageActivity;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.json.JSONArray;
import org.json.JSONObject;

/** Starts the app's screen, asks it what the arguments say ("METHOD URL"), and prints what it did, as JSON. */
public final class Drive {
  /** Opens what the app keeps to its package. */
  public static final class Screen {
    static void call(Object on, String name, Class<?>[] types, Object... values) throws Exception {
      var method = PageActivity.class.getDeclaredMethod(name, types);
      method.setAccessible(true);
      method.invoke(on, values);
    }
  }

  public static void main(String[] arguments) throws Exception {
    Activity.assets = new AssetManager(arguments[0]);
    Activity.info.flags = Integer.parseInt(arguments[1]);
    var activity = new PageActivity();
    Screen.call(activity, "onCreate", new Class<?>[] {android.os.Bundle.class}, new Object[] {null});
    var frame = (FrameLayout) activity.content;
    var web = (WebView) frame.child;
    var said = new JSONObject();
    said.put("url", web.url);
    said.put("debugging", WebView.debugging);
    said.put("fits", frame.fits);
    said.put("settings", new JSONObject(web.settings.said));
    var answers = new JSONArray();
    for (int index = 2; index < arguments.length; index++) {
      answers.put(answer(web, arguments[index]));
    }
    said.put("answers", answers);
    said.put("chosen", choose(activity, web.chrome));
    Screen.call(activity, "onDestroy", new Class<?>[0]);
    said.put("destroyed", web.destroyed);
    System.out.println(said);
  }

  private static JSONObject answer(WebView web, String asked) throws Exception {
    var parts = asked.split(" ", 2);
    var request = new WebResourceRequest() {
      @Override public Uri getUrl() {
        return new Uri(parts[1]);
      }

      @Override public String getMethod() {
        return parts[0];
      }
    };
    WebResourceResponse given = web.client.shouldInterceptRequest(web, request);
    var said = new JSONObject();
    said.put("status", given.status);
    said.put("reason", given.reason);
    said.put("type", given.type);
    said.put("charset", given.charset == null ? JSONObject.NULL : given.charset);
    said.put("headers", new JSONObject(new TreeMap<>(given.headers)));
    var bytes = given.data.readAllBytes();
    var hash = java.security.MessageDigest.getInstance("SHA-256").digest(bytes);
    said.put("sha256", java.util.HexFormat.of().formatHex(hash));
    said.put("bytes", bytes.length);
    said.put("stays", web.client.shouldOverrideUrlLoading(web, request));
    return said;
  }

  private static JSONArray choose(PageActivity activity, WebChromeClient chrome) throws Exception {
    List<String> chosen = new ArrayList<>();
    var params = new WebChromeClient.FileChooserParams() {
      @Override public Intent createIntent() {
        return new Intent("content://a/picture");
      }
    };
    Class<?>[] types = {int.class, int.class, Intent.class};
    for (int result : new int[] {-1, 0}) {
      chrome.onShowFileChooser(null, uris -> chosen.add(uris == null ? "none" : uris[0].getAuthority()), params);
      Screen.call(activity, "onActivityResult", types, 0x7f, result, activity.started);
    }
    // A question that is asked while another waits; then one that no app answers.
    chrome.onShowFileChooser(null, uris -> chosen.add(uris == null ? "given up" : "?"), params);
    activity.nobodyAnswers = true;
    chrome.onShowFileChooser(null, uris -> chosen.add(uris == null ? "nobody" : "?"), params);
    Screen.call(activity, "onActivityResult", types, 5, -1, activity.started);
    chosen.add("others: " + activity.unknownResults);
    return new JSONArray(chosen);
  }
}
