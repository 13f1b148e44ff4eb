package edgekit.app

import android.content.Context
import edgekit.core.GoldenCase
import edgekit.core.OrtModel
import edgekit.core.RunRecord
import edgekit.model.ModelInfo
import java.io.File
import java.io.FileInputStream
import java.io.FileNotFoundException
import java.io.InputStream
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.security.MessageDigest

/** What edgekit put into this app: the model, and in debug builds its golden cases. */
class Assets(private val context: Context) {

  /** Opens the model; [attempts] gets what was tried. Throws OrtException when no execution provider takes it. */
  fun open(
      attempts: MutableList<RunRecord.Attempt>,
      providers: List<String> = ModelInfo.providers(),
      threads: Int = ModelInfo.THREADS
  ): OrtModel {
    if (ModelInfo.externalData().isEmpty()) {
      return OrtModel.open(mapped(ModelInfo.MODEL), null, providers, threads, attempts)
    }
    // Weights beside the model are found by path, and assets have none.
    val folder = File(context.noBackupFilesDir, "model-" + ModelInfo.MODEL_SHA256.substring(0, 16))
    // What an earlier version of the app copied is of another model, and may be as large as this one.
    context.noBackupFilesDir
        .listFiles { file -> file.name.startsWith("model-") && file != folder }
        ?.forEach { it.deleteRecursively() }
    for (name in ModelInfo.externalData() + ModelInfo.MODEL) {
      copy(name, File(folder, name))
    }
    return OrtModel.open(null, File(folder, ModelInfo.MODEL).path, providers, threads, attempts)
  }

  /** The golden cases; none in a release. */
  fun cases(): List<GoldenCase> {
    try {
      val document = context.assets.open("cases.json").use { String(it.readBytes(), Charsets.UTF_8) }
      return GoldenCase.read(document, mapped("cases.safetensors"))
    } catch (error: FileNotFoundException) {
      return emptyList()
    }
  }

  /** The sha256 of an asset's bytes, in lower-case hexadecimal. */
  fun sha256(name: String): String {
    val digest = MessageDigest.getInstance("SHA-256")
    context.assets.open(name).use { stream -> stream.parts { data, count -> digest.update(data, 0, count) } }
    return digest.digest().joinToString("") { "%02x".format(it) }
  }

  /** Maps an asset into memory: it is read as it is needed, and takes none of the app's heap. */
  private fun mapped(name: String): ByteBuffer =
      context.assets.openFd(name).use { asset ->
        FileInputStream(asset.fileDescriptor).channel.use { file ->
          file.map(FileChannel.MapMode.READ_ONLY, asset.startOffset, asset.declaredLength)
        }
      }

  private fun copy(name: String, target: File) {
    if (target.exists()) {
      return
    }
    target.parentFile?.mkdirs()
    val part = File(target.path + ".part")
    context.assets.open(name).use { stream ->
      part.outputStream().use { file -> stream.parts { data, count -> file.write(data, 0, count) } }
    }
    check(part.renameTo(target)) { "$target cannot be written." }
  }

  private fun InputStream.parts(take: (ByteArray, Int) -> Unit) {
    val buffer = ByteArray(1 shl 16)
    while (true) {
      val count = read(buffer)
      if (count < 0) {
        return
      }
      take(buffer, count)
    }
  }
}
