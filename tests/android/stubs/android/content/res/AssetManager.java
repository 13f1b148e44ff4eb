package android.content.res;

import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Assets are the files of a folder, as they are those below assets/ of an APK. */
public class AssetManager {
  public final String folder;

  public AssetManager(String folder) {
    this.folder = folder;
  }

  public InputStream open(String path) throws IOException {
    return new FileInputStream(folder + "/" + path);
  }
}
