package edgekit.app

import androidx.test.ext.junit.runners.AndroidJUnit4
import androidx.test.platform.app.InstrumentationRegistry
import java.io.File
import org.junit.Assert.assertTrue
import org.junit.Test
import org.junit.runner.RunWith

/**
 * Replays the golden cases on this device and writes the run record that `edgekit parity --device adb://SERIAL` pulls
 * and judges. Here only what could not be judged fails: a record that cannot be written.
 */
@RunWith(AndroidJUnit4::class)
class GoldenCasesTest {
  @Test
  fun replaysTheGoldenCasesAndWritesARunRecord() {
    val asked = InstrumentationRegistry.getArguments()
    val context = InstrumentationRegistry.getInstrumentation().targetContext
    val folder = File(context.getExternalFilesDir(null), "edgekit")
    folder.deleteRecursively()
    Report(context)
        .write(
            run = asked.getString("run", "by-hand"),
            cases = asked.getString("cases")?.split(","),
            repeats = asked.getString("repeats", "5").toInt(),
            provider = asked.getString("variant"),
            threads = asked.getString("threads")?.toInt(),
            folder = folder)
    assertTrue(File(folder, "record.json").length() > 0)
    assertTrue(File(folder, "record.safetensors").length() > 0)
  }
}
