package android.app;

import android.content.ActivityNotFoundException;
import android.content.Context;
import android.content.Intent;
import android.content.pm.ApplicationInfo;
import android.content.res.AssetManager;
import android.os.Bundle;
import android.view.View;

public class Activity extends Context {
  public static AssetManager assets;
  public static ApplicationInfo info = new ApplicationInfo();
  public View content;
  public Intent started;
  public boolean nobodyAnswers;
  public int unknownResults;

  protected void onCreate(Bundle state) {}

  protected void onDestroy() {}

  protected void onActivityResult(int request, int result, Intent data) {
    unknownResults++;
  }

  public AssetManager getAssets() {
    return assets;
  }

  public ApplicationInfo getApplicationInfo() {
    return info;
  }

  public void setContentView(View view) {
    content = view;
  }

  public void startActivityForResult(Intent intent, int request) {
    if (nobodyAnswers) {
      throw new ActivityNotFoundException();
    }
    started = intent;
  }
}
