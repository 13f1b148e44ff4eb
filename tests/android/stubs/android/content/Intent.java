package android.content;

public class Intent {
  public final String what;

  public Intent(String what) {
    this.what = what;
  }
}
