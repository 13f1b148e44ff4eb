package edgekit.app

import android.content.Context
import android.os.Build
import edgekit.core.OrtModel
import edgekit.core.Replay
import edgekit.core.RunRecord
import edgekit.model.ModelInfo
import java.io.File

/** Replays the golden cases on this device, and writes a run record. It judges nothing: `edgekit parity` does. */
class Report(private val context: Context) {

  /**
   * Writes record.json and record.safetensors into [folder]. [cases]: ids, or null for all. [provider]: one execution
   * provider instead of those of the target. [threads]: null for the target's.
   */
  fun write(run: String, cases: List<String>?, repeats: Int, provider: String?, threads: Int?, folder: File) {
    val assets = Assets(context)
    val record = RunRecord(run, assets.sha256("manifest.json"), assets.sha256(ModelInfo.MODEL), null)
    val providers = if (provider == null) ModelInfo.providers() else listOf(provider)
    val attempts = mutableListOf<RunRecord.Attempt>()
    try {
      val start = System.nanoTime()
      assets.open(attempts, providers, threads ?: ModelInfo.THREADS).use { model ->
        val took = (System.nanoTime() - start) / 1e6
        environment(record, providers, model)
        Replay.run(model, assets.cases(), cases, repeats, took, record)
      }
    } catch (error: Exception) {
      environment(record, providers, null)
      record.error(Replay.said(error))
    }
    attempts.forEach(record::attempt)
    folder.mkdirs()
    File(folder, "record.safetensors").writeBytes(record.tensors())
    File(folder, "record.json").writeBytes(record.document())
  }

  private fun environment(record: RunRecord, providers: List<String>, model: OrtModel?) {
    val device = "${Build.MANUFACTURER} ${Build.MODEL}, Android ${Build.VERSION.RELEASE}, ${Build.SUPPORTED_ABIS[0]}"
    val version = if (model == null) ModelInfo.RUNTIME_VERSION else OrtModel.version()
    record.environment(
        "onnxruntime-android", version, providers[0], model?.executionProvider, model?.threads ?: 1, device, emulated())
  }

  private fun emulated() = Build.FINGERPRINT.contains("generic") || Build.HARDWARE == "ranchu"
}
