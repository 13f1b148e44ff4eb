package edgekit.app

import android.app.Application
import android.content.Context
import android.system.Os

/** Switches onnxruntime's reports on its use off, before anything of it is loaded. */
class App : Application() {
  override fun attachBaseContext(base: Context) {
    super.attachBaseContext(base)
    Os.setenv("ORT_DISABLE_TELEMETRY", "1", true)
  }
}
