package android.widget;

import android.content.Context;
import android.view.View;

public class FrameLayout extends View {
  public View child;
  public boolean fits;

  public FrameLayout(Context context) {}

  public void setFitsSystemWindows(boolean fits) {
    this.fits = fits;
  }

  public void addView(View view) {
    child = view;
  }
}
