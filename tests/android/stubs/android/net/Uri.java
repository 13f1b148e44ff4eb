package android.net;

/** What Android's class says of an address, by way of Java's own. */
public class Uri {
  private final java.net.URI uri;

  public Uri(String text) {
    uri = java.net.URI.create(text);
  }

  public String getScheme() {
    return uri.getScheme();
  }

  public String getAuthority() {
    return uri.getAuthority();
  }

  public String getPath() {
    return uri.getPath();
  }
}
