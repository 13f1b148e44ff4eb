plugins {
  // Kotlin comes with the Android plugin since version 9.
  alias(libs.plugins.android.application) apply false
}
